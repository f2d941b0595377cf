import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { hasErrorCode, ServoError } from '../../lib/error.ts'
import { shellWord } from '../../lib/process/shell-word.ts'
import { configFile } from '../../sdk/project/project-files.ts'
import { asking, type Terminal } from '../confirm.ts'
import { installPackages, type PackageManager, packageManagerOf } from '../init/install.ts'
import { ownPackage, ownSpec } from '../init/own-package.ts'
import { type Merged, mergedPackage } from '../init/package-json.ts'
import { templateFiles } from '../init/template-files.ts'
import { colours, note, print, printable, printJson } from '../output.ts'

export interface InitFlags {
  name?: string
  assets?: string
  /** False with --no-install; undefined if neither was given. */
  install?: boolean
  yes?: boolean
  json?: boolean
}

interface Choices {
  readonly dir: string
  readonly name: string
  readonly assets: string
  readonly install: boolean
}

const NOT_A_MODULE =
  'package.json has no "type": "module". The project runs without it, but TypeScript needs it: add it, or remove verbatimModuleSyntax from tsconfig.json'

const COMMON_JS =
  'package.json has "type": "commonjs", but a project consists of ES modules. Before you run it: npm pkg set type=module'

/** What became of a file. */
interface Written {
  readonly wrote: string[]
  readonly left: string[]
}

/** Makes a project that runs at once, or adds what an existing package lacks. No file is overwritten. */
export async function initCommand(folder: string | undefined, flags: InitFlags, now: Date): Promise<void> {
  const choices = await chosen(folder, flags)
  if (choices === undefined) return
  const began = performance.now()
  const { dir, name } = choices
  const files = templateFiles({ ...choices, now })
  checkPlaces(choices, files)
  const description = packageJson(choices)
  const manager = packageManagerOf(dir)
  const { wrote, left } = writeAll(dir, files, description)
  const report = {
    folder: dir,
    project: name,
    wrote: wrote.sort(),
    left,
    added: description.isNew ? [] : description.added,
    kept: description.kept,
  }
  if (!flags.json) show(report)
  const unignored = left.includes('.gitignore') ? missingLines(join(dir, '.gitignore'), files.get('.gitignore') ?? '') : []
  if (unignored.length > 0) note(`Git does not ignore ${unignored.join(', ')} here: add a line for each to .gitignore`)
  if (description.isCommonJs) note(COMMON_JS)
  else if (!description.isModule) note(NOT_A_MODULE)
  if (choices.install) {
    note(`installing packages with ${manager}`)
    await installPackages(manager, dir)
  }
  const ms = Math.round(performance.now() - began)
  const isReady = !description.isCommonJs
  const next = nextSteps(choices, manager, isReady)
  if (flags.json) printJson({ ...report, installed: choices.install, ready: isReady, next, ms })
  else showNext(next, isReady, ms)
}

/** The lines of a text that a file lacks, with or without a slash around them. */
function missingLines(file: string, text: string): string[] {
  const bare = (line: string): string => line.trim().replaceAll(/^\/|\/$/g, '')
  const there = new Set(readFileSync(file, 'utf8').split('\n').map(bare))
  return text.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('#') && !there.has(bare(line)))
}

/** The flags, then what the user answers, then the defaults. Undefined if the user left. */
async function chosen(folder: string | undefined, flags: InitFlags): Promise<Choices | undefined> {
  const terminal: Terminal = { input: process.stdin, output: process.stdout }
  const isAsking = !flags.yes && !flags.json && process.stdin.isTTY === true && process.stdout.isTTY === true
  const choose = async (ask: (question: string) => Promise<string | undefined>): Promise<Choices | undefined> => {
    const answer = async (given: string | undefined, question: string, usual: string): Promise<string | undefined> => {
      if (given !== undefined || !isAsking) return given ?? usual
      const answered = await ask(`${question} ${colours.dim(`(${usual})`)} `)
      return answered === '' ? usual : answered
    }
    const where = await answer(folder, 'Project folder?', '.')
    if (where === undefined) return undefined
    if (where.trim() === '') throw badFlag('the name of the folder is empty', 'Name a folder, or write . for this one.')
    const dir = checkedFolder(resolve(where))
    const name = await answer(flags.name, 'Project name?', nameFrom(basename(dir)))
    if (name === undefined) return undefined
    const assets = await answer(flags.assets, 'Folder for assets?', existsSync(join(dir, 'assets')) ? 'servo' : 'assets')
    if (assets === undefined) return undefined
    const install = await answer(
      flags.install === undefined ? undefined : flags.install ? 'yes' : 'no',
      `Install packages with ${packageManagerOf(dir)}?`,
      'yes',
    )
    if (install === undefined) return undefined
    return { dir, name: checkedProject(name), assets: checkedAssets(assets), install: /^y(es)?$/i.test(install) }
  }
  return isAsking ? await asking(terminal, choose) : await choose(() => Promise.resolve(undefined))
}

function checkedFolder(dir: string): string {
  if (hasLongName(dir)) throw tooLong('the folder')
  if (dir.split(sep).includes('node_modules'))
    throw badFlag(`${dir} is below node_modules`, 'Node runs no TypeScript there. Choose another folder.')
  if (dir.split(sep).includes('.git'))
    throw badFlag(`${dir} is inside .git`, 'Git keeps its own files there. Choose another folder.')
  const there = existing(dir)
  if (there === undefined && isLink(dir))
    throw badFlag(`${dir} is a symbolic link to a folder that does not exist`, 'Remove the link, or choose another folder.')
  if (there !== undefined && !there.isDirectory()) throw badFlag(`${dir} is not a folder`, 'Choose another folder.')
  const config = configFile(dir)
  if (config === undefined) return outsideProjects(dir)
  throw new ServoError('conflict', 'project_exists', `${dir} is already a Servo project: it has a ${basename(config)}`, {
    hint: 'Run npm install there if packages are missing, then servo dev. Or choose another folder.',
  })
}

/** The assets of a project are found in all folders below its own, so those of a project within would be its assets too. */
function outsideProjects(dir: string): string {
  for (let above = dirname(dir); ; above = dirname(above)) {
    if (existing(above)?.isDirectory() && configFile(above) !== undefined)
      throw new ServoError('conflict', 'project_exists', `${dir} is inside the Servo project ${above}`, {
        hint: 'Add assets to that project, or choose a folder outside it.',
      })
    if (above === dirname(above)) return dir
  }
}

const isLink = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false

function existing(dir: string): Stats | undefined {
  try {
    return statSync(dir, { throwIfNoEntry: false })
  } catch (error) {
    if (hasErrorCode(error, 'ENAMETOOLONG')) throw tooLong('the folder')
    if (hasErrorCode(error, 'ELOOP'))
      throw badFlag(`${dir} is a symbolic link that leads back to itself`, 'Remove the link, or choose another folder.')
    throw error
  }
}

/** `My Shop` → `my-shop` */
const nameFrom = (folder: string): string =>
  folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9_.-]+/g, '-')
    .replaceAll(/^[-._]+|-+$/g, '') || 'my-project'

function checkedProject(name: string): string {
  // The name of the package too, so as npm allows it.
  if (/^[a-z0-9][a-z0-9_.-]{0,99}$/.test(name)) return name
  throw badFlag(`invalid project name '${name}'`, 'Use lower-case letters, digits, "-", "_" and ".", such as my-shop.')
}

function checkedAssets(folder: string): string {
  if (hasLongName(folder)) throw tooLong('the folder for assets')
  if (folder.split('/').includes('node_modules'))
    throw badFlag(
      `invalid folder for assets '${folder}'`,
      'node_modules is for packages. Use a folder such as assets or src/assets.',
    )
  if (/^[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/.test(folder)) return folder
  const isInside = !folder.startsWith('/') && !folder.split('/').includes('..')
  throw badFlag(
    `invalid folder for assets '${folder}'`,
    isInside
      ? 'Use letters from A to Z, digits, "-", "_" and ".", such as assets or src/assets.'
      : 'Use a folder inside the project, such as assets or src/assets.',
  )
}

const badFlag = (message: string, hint: string): ServoError => new ServoError('invalid', 'bad_flag', message, { hint })

/** What file systems allow for one name, in bytes. */
const LONGEST_NAME = 255

const hasLongName = (path: string): boolean => path.split(/[\\/]/).some((name) => Buffer.byteLength(name) > LONGEST_NAME)

const tooLong = (what: string): ServoError => badFlag(`the name of ${what} is too long for this disk`, 'Choose a shorter one.')

/** Refuses assets where they cannot be, before anything is written. */
function checkPlaces({ dir, assets }: Choices, files: ReadonlyMap<string, string>): void {
  // A path may also be too long as a whole.
  for (const name of files.keys()) existing(join(dir, name))
  const steps = assets.split('/').map((_, i, names) => names.slice(0, i + 1).join('/'))
  const file = steps.find((step) => files.has(step) || step === 'package.json' || existing(join(dir, step))?.isFile())
  if (file !== undefined)
    throw badFlag(
      `the folder for assets cannot be ${assets}, because ${file} is a file`,
      'Use a folder such as assets or src/assets.',
    )
  for (const name of [...files.keys(), 'package.json']) {
    const path = join(dir, name)
    if (existing(path)?.isFile() || lstatSync(path, { throwIfNoEntry: false }) === undefined) continue
    throw badFlag(
      `${name} is a folder, or a link to nowhere, where a file should be`,
      'Move it away, or choose another folder.',
    )
  }
}

/** Writes the files that are missing, and package.json. Whatever it made is removed again if one of them cannot be written. */
function writeAll(dir: string, files: ReadonlyMap<string, string>, { isNew, added, text }: Described): Written {
  const made: string[] = []
  try {
    makeFolder(dir, made)
    const written = writeFiles(dir, isNew ? new Map([...files, ['package.json', text]]) : files, made)
    if (!isNew && added.length > 0) {
      // The file of the user is replaced as a whole, or not at all: the disk may be full.
      const next = join(dir, '.package.json.next')
      made.push(next)
      writeFileSync(next, text)
      renameSync(next, join(dir, 'package.json'))
    }
    return written
  } catch (error) {
    // Folders are empty again when their turn comes. One that others have used meanwhile stays.
    for (const path of made.reverse()) removeMade(path)
    throw error
  }
}

function removeMade(path: string): void {
  try {
    if (statSync(path).isDirectory()) rmdirSync(path)
    else unlinkSync(path)
  } catch {
    // The first error is the one to tell.
  }
}

/** One by one: a system that refuses says why only of the folder that it refuses. */
function makeFolder(dir: string, made: string[]): void {
  if (existsSync(dir)) return
  makeFolder(dirname(dir), made)
  try {
    mkdirSync(dir)
  } catch (error) {
    // What a file system says that makes no folders for anybody, such as /proc.
    if (!hasErrorCode(error, 'ENOENT')) throw error
    throw badFlag(`no folder can be created in ${dirname(dir)}`, 'Choose another folder.')
  }
  made.push(dir)
}

function writeFiles(dir: string, files: ReadonlyMap<string, string>, made: string[]): Written {
  const written: Written = { wrote: [], left: [] }
  for (const [name, text] of files) {
    const path = join(dir, name)
    makeFolder(dirname(path), made)
    try {
      writeFileSync(path, text, { flag: 'wx' })
      made.push(path)
      written.wrote.push(name)
    } catch (error) {
      if (!hasErrorCode(error, 'EEXIST')) {
        // A full disk leaves the beginning of it.
        made.push(path)
        throw error
      }
      written.left.push(name)
    }
  }
  return written
}

interface Described extends Merged {
  readonly isNew: boolean
}

/** The package.json of the project: a new one, or the one that is there with what it lacks. */
function packageJson({ dir, name }: Choices): Described {
  const own = ownPackage()
  const { zod } = own.dependencies
  const { typescript, '@types/node': node } = own.devDependencies
  const file = join(dir, 'package.json')
  const isNew = !existsSync(file)
  const begun = { name, version: '0.0.0', private: true, type: 'module', engines: { node: own.engines.node } }
  const wanted = {
    scripts: { dev: 'servo dev', check: 'servo check', test: 'node --test' },
    dependencies: { [own.name]: ownSpec(dir, own), zod: `^${zod}` },
    devDependencies: { '@types/node': `^${node}`, typescript: `^${typescript}` },
  }
  return { isNew, ...mergedPackage(isNew ? JSON.stringify(begun, null, 2) : readFileSync(file, 'utf8'), wanted, file) }
}

interface Report extends Written {
  readonly folder: string
  readonly added: readonly string[]
  readonly kept: readonly string[]
}

function show({ folder, wrote, left, added, kept }: Report): void {
  const line = (verb: string, what: string): void => print(`${colours.green(verb.padEnd(7))}${printable(what)}`)
  for (const name of wrote) line('wrote', join(relative('.', folder), name))
  if (added.length > 0) line('added', `${added.join(', ')} to package.json`)
  if (kept.length > 0) line('left', `${kept.join(', ')} of package.json`)
  for (const name of left) line('left', name)
}

const RUN_ALL = "npx servo run '*' --partition '*'"

/** The commands to type, in this order. */
function nextSteps({ dir, install }: Choices, manager: PackageManager, isReady: boolean): string[] {
  const folder = relative('.', dir)
  return [
    ...(folder === '' ? [] : [`cd ${shellWord(folder)}`]),
    ...(isReady ? [] : ['npm pkg set type=module']),
    ...(install ? [] : [`${manager} install`]),
    'npx servo dev',
    RUN_ALL,
  ]
}

function showNext(steps: readonly string[], isReady: boolean, ms: number): void {
  const seconds = `in ${(ms / 1_000).toFixed(1)} s`
  if (isReady) print(`${colours.green('ready')}  ${seconds}. Next:`)
  else
    print(
      `${colours.yellow('done')}   ${seconds}, but the project does not run until package.json says "type": "module". Next:`,
    )
  for (const step of steps) print(`  ${printable(step)}${step === RUN_ALL ? '   (in another terminal)' : ''}`)
}
