import fs from 'node:fs'
import path from 'node:path'
import { isOutside } from '../declare/option-checks.ts'

/** The options of a command that say which files belong to its code. */
export interface CommandCode {
  readonly run?: readonly unknown[]
  readonly cwd?: string
  readonly files?: readonly string[]
}

/** A script is smaller; what a command reads and writes may be larger, and is not its code. */
const MAX_SCRIPT_BYTES = 2 ** 20

const isHidden = (name: string): boolean => name.startsWith('.') || name === 'node_modules'

/** Patterns, relative to the project folder, of the files that belong to the code of a command: those it lists, and those its command line names. */
export function codePatterns(root: string, { run = [], cwd = '.', files = [] }: CommandCode): string[] {
  const named = run.flatMap((word) => (typeof word === 'string' ? [word, word.slice(word.indexOf('=') + 1)] : []))
  const scripts = named.map((word) => path.resolve(root, cwd, word)).filter((file) => isScript(root, file))
  return [...new Set([...scripts.map((file) => relative(root, file)), ...files])]
}

function isScript(root: string, file: string): boolean {
  const within = relative(root, file)
  if (within === '' || isOutside(within) || within.split('/').some(isHidden)) return false
  const found = statOf(file)
  return found?.isFile() === true && found.size <= MAX_SCRIPT_BYTES
}

/** Any text may stand in a command line. One that cannot be a path, because it is too long for one, names no file. */
function statOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** The files of a pattern, or of everything below a folder, in order. Hidden files and packages are left out. */
export function filesOf(root: string, pattern: string): string[] {
  const isFolder = statOf(path.resolve(root, pattern))?.isDirectory() === true
  const exclude = (entry: fs.Dirent | string): boolean =>
    isHidden(typeof entry === 'string' ? path.basename(entry) : entry.name)
  return fs
    .globSync(isFolder ? path.posix.join(pattern, '**') : pattern, { cwd: root, withFileTypes: true, exclude })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
}

const relative = (root: string, file: string): string => path.relative(root, file).split(path.sep).join('/')
