import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Command } from 'commander'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { joinFields } from '../../../src/cli/json/chosen-fields.ts'
import { commands as servoCommands } from '../../../src/cli/main.ts'
import { compiled, linesMissing, PageProject } from './page-project.ts'
import { pageOf, pages, root, servoLinesOf, stepsOf, wordsOf } from './pages.ts'

const all = pages()
const folderOf = (name: string): string => path.join(dir, name.replaceAll(/[/.]/g, '-'))
/** Loaded and run by test/sdk/docs.test.ts: its project needs other machines. */
const LOADED_ELSEWHERE = 'docs/sdk.md'

let dir = ''
beforeAll(() => {
  dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'servo-pages-')))
  // As an installation has them, but for the compiler: types are checked once, for all pages.
  const modules = path.join(dir, 'node_modules')
  fs.mkdirSync(modules)
  fs.symlinkSync(path.resolve(inject('servoMain'), '../../..'), path.join(modules, 'servo-flow'))
  fs.symlinkSync(path.join(root, 'node_modules/zod'), path.join(modules, 'zod'))
  fs.writeFileSync(path.join(dir, 'package.json'), '{ "type": "module" }')
  for (const { name } of all) fs.mkdirSync(folderOf(name))
})
afterAll(() => fs.rmSync(dir, { recursive: true, force: true, maxRetries: 5 }))

test('every block of a page says what it is, or why it is not run', () => {
  expect(all.flatMap(({ undeclared }) => undeclared)).toEqual([])
  expect(pageOf('page', '```\nservo dev\n```\n\n```ts\nconst a = 1\n```\n').undeclared).toEqual(['page:1', 'page:5'])
})

test('every link of a page leads to a file, and to a heading of it', () => {
  const markdown = fs
    .readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`)
  const read = (file: string): string => fs.readFileSync(path.join(root, file), 'utf8')
  const broken = [...markdown, 'README.md', 'SECURITY.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'].flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].flatMap(([link, file = '', anchor]) => {
      const target = file === '' ? page : path.join(path.dirname(page), file)
      if (!fs.existsSync(path.join(root, target))) return [`${page}: ${link}`]
      return anchor === undefined || anchorsOf(read(target)).includes(anchor) ? [] : [`${page}: ${link}`]
    }),
  )
  expect(broken).toEqual([])
})

/** The anchors that GitHub gives to headings. */
const anchorsOf = (markdown: string): readonly string[] =>
  [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )

test('every command on a page exists, with its flags', () => {
  const wrong = all.flatMap((page) =>
    servoLinesOf(page).flatMap(({ line, command }) => {
      const mistake = mistakeIn(command)
      return mistake === undefined ? [] : [`${page.name}:${line} ${command}: ${mistake}`]
    }),
  )
  expect(wrong).toEqual([])
  expect(mistakeIn('servo runs lst')).toBe('too many arguments')
  expect(mistakeIn('servo runs list --stat failed')).toBe('unknown flag --stat')
  expect(mistakeIn("servo run 'a b' --partition x | cat # all")).toBeUndefined()
})

/** What is wrong with the words of a command line, as far as the declaration of the command says. */
function mistakeIn(line: string): string | undefined {
  const simple = line.replace(/ (?:[|>&<]|\$\().*$/, '')
  const program = servoCommands()
  const words = joinFields(program, wordsOf(simple.replace(/^npx /, ''))?.slice(1) ?? [])
  let command: Command = program
  while (words.length > 0) {
    const below = command.commands.find((each) => each.name() === words[0])
    if (below === undefined) break
    command = below
    words.shift()
  }
  let operands = 0
  while (words.length > 0) {
    const [flag = '', value] = (words.shift() ?? '').split('=')
    if (!/^--?[a-z]/i.test(flag)) operands++
    else {
      if (flag === '-h' || flag === '--help') continue
      const option = command.options.find(({ long, short }) => flag === long || flag === short)
      if (option === undefined) return `unknown flag ${flag}`
      if (option.required && value === undefined) words.shift()
    }
  }
  const { registeredArguments: taken } = command
  if (operands > taken.length && !taken.at(-1)?.variadic) return 'too many arguments'
  return operands < taken.filter(({ required }) => required).length ? 'too few arguments' : undefined
}

/** Pages with something to do. */
const played = all.filter((page) => stepsOf(page).length > 0)

test.each(played)('$name does what it says', async (page) => {
  const project = new PageProject(folderOf(page.name))
  onTestFinished(() => project.end())
  let isLoaded = page.name === LOADED_ELSEWHERE
  for (const step of stepsOf(page)) {
    if ('file' in step) {
      await project.save(step.file, step.text)
      continue
    }
    const { code, output } = await project.run(step)
    isLoaded = true
    const where = `${page.name}:${step.line} $ ${step.command}\n${output}`
    const shouldFail = /^(?:error:|failed)/m.test(step.shown ?? '')
    expect(code === 0, where).toBe(!shouldFail)
    expect(linesMissing(step.shown ?? '', output), where).toEqual([])
  }
  expect(isLoaded, 'The modules of a page are loaded by a command: show one.').toBe(true)
})

test('the modules of all pages compile', async () => {
  expect(await compiled(dir, root)).toBe('')
})
