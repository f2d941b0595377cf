import { execFile } from 'node:child_process'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

/** The mistakes are files of the type check, which fails when one of them compiles. Here we read what the compiler says of each. */
const folder = path.join(import.meta.dirname, 'mistakes')
const root = path.resolve(import.meta.dirname, '../..')
const golden = path.join(folder, 'last-lines.txt')

const marker = /^\s*\/\/ @ts-expect-error (.+)$/

interface Found {
  readonly mistake: string
  readonly lastLines: string[]
}

let project = ''
let found = new Map<string, Found[]>()

beforeAll(async () => {
  project = fs.mkdtempSync(path.join(tmpdir(), 'servo-mistakes-'))
  const names = fs.readdirSync(folder).filter((name) => name.endsWith('.ts'))
  fs.mkdirSync(path.join(project, 'mistakes'))
  fs.cpSync(path.join(import.meta.dirname, 'shop'), path.join(project, 'shop'), { recursive: true })
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(project, 'node_modules'))
  fs.writeFileSync(path.join(project, 'package.json'), '{ "type": "module" }')
  const paths = {
    'servo-flow': [path.join(root, 'src/index.ts')],
    'servo-flow/test': [path.join(root, 'src/test.ts')],
    zod: [path.join(root, 'node_modules/zod/index.d.ts')],
  }
  fs.writeFileSync(
    path.join(project, 'tsconfig.json'),
    JSON.stringify({ extends: path.join(root, 'tsconfig.json'), compilerOptions: { paths }, include: ['mistakes'] }),
  )
  const marks = new Map<string, Map<number, string>>()
  for (const name of names) {
    const lines = fs.readFileSync(path.join(folder, name), 'utf8').split('\n')
    marks.set(name, new Map(lines.flatMap((line, i) => (marker.test(line) ? [[i + 1, marker.exec(line)?.[1] ?? '']] : []))))
    const withoutExpectations = lines.map((line) => (marker.test(line) ? '' : line)).join('\n')
    fs.writeFileSync(path.join(project, 'mistakes', name), withoutExpectations)
  }
  found = attribute(await compile(), marks)
}, 120_000)

afterAll(() => fs.rmSync(project, { recursive: true, force: true }))

function compile(): Promise<string> {
  return new Promise((resolve) => {
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    execFile(process.execPath, [tsc, '--pretty', 'false'], { cwd: project, maxBuffer: 2 ** 26 }, (_, stdout) => resolve(stdout))
  })
}

/** The last line of each error, under the mistake above it. */
function attribute(output: string, marks: ReadonlyMap<string, ReadonlyMap<number, string>>): Map<string, Found[]> {
  const all = new Map(
    [...marks].map(([name, byLine]) => [name, [...byLine.values()].map((mistake): Found => ({ mistake, lastLines: [] }))]),
  )
  for (const error of output.split(/\n(?=\S)/)) {
    const [, name = '', line = ''] = /^mistakes\/([\w-]+\.ts)\((\d+),/.exec(error) ?? []
    const above = [...(marks.get(name)?.keys() ?? [])].filter((at) => at < Number(line)).length
    const into = all.get(name)?.[above - 1]
    if (into === undefined) throw new Error(`an error that belongs to no mistake: ${error}`)
    const last = error.trimEnd().split('\n').at(-1)?.trim() ?? ''
    into.lastLines.push(last.replace(/^.*?: error TS\d+: /, ''))
  }
  return all
}

const asText = (all: ReadonlyMap<string, readonly Found[]>): string =>
  [...all]
    .map(([name, mistakes]) => {
      const lines = mistakes.flatMap(({ mistake, lastLines }) => [mistake, ...lastLines.map((line) => `  ${line}`), ''])
      return [`## ${name.replace('.ts', '')}`, '', ...lines].join('\n')
    })
    .join('\n')

describe('typing mistakes', () => {
  test('each is one compile error, whose last line reads as recorded', () => {
    if (process.env['UPDATE_GOLDEN']) fs.writeFileSync(golden, asText(found))
    const every = [...found.values()].flat()
    expect(every.length).toBeGreaterThanOrEqual(30)
    expect(every.filter(({ lastLines }) => lastLines.length !== 1)).toEqual([])
    const how = 'Read what changed, then run `UPDATE_GOLDEN=1 npm test -- test/sdk/mistakes.test.ts`.'
    expect(asText(found), how).toBe(fs.readFileSync(golden, 'utf8'))
  })

  test('no last line is longer than a terminal shows at a glance, and none ends in a type that the compiler cut', () => {
    const lines = [...found.values()].flat().flatMap(({ lastLines }) => lastLines)
    expect(lines.filter((line) => line.length > 400 || /\.\.\.[^"]*'\.$/.test(line))).toEqual([])
  })
})
