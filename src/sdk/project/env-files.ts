import fs from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { hasErrorCode, ServoError } from '../../lib/error.ts'

/** Of a variable that several of these name, the first value counts. */
const ENV_FILES = ['.env.local', '.env'] as const

export const isEnvFile = (name: string): boolean => ENV_FILES.some((each) => each === name)

type Environment = Record<string, string | undefined>

/**
 * Adds the variables of a project's env files to the environment of this process, and so to that of everything it starts. A
 * variable that is set stays as it is. The next call takes back what this one added, so that an edit of a file counts.
 */
export function applyEnvFiles(projectDir: string, environment: Environment = process.env): void {
  const [first = {}, second = {}] = ENV_FILES.map((name) => variablesIn(path.join(projectDir, name)))
  const read = { ...second, ...first }
  const added = ADDED.get(environment) ?? new Map<string, string>()
  for (const [name, value] of added) if (environment[name] === value) delete environment[name]
  added.clear()
  for (const [name, value = ''] of Object.entries(read)) {
    if (environment[name] !== undefined) continue
    environment[name] = value
    added.set(name, value)
  }
  ADDED.set(environment, added)
}

/** What this process added to an environment. */
const ADDED = new WeakMap<Environment, Map<string, string>>()

const variablesIn = (file: string): Environment => parseEnv(textOf(file))

function textOf(file: string): string {
  try {
    // Editors on Windows begin a file with a mark of its encoding.
    return fs.readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    // A folder of this name is a virtual environment of Python.
    if (hasErrorCode(error, 'ENOENT') || hasErrorCode(error, 'EISDIR')) return ''
    throw new ServoError('unavailable', 'env_file_unreadable', `${file} cannot be read`, {
      hint: 'Check the owner and the permissions of the file, or remove it.',
      cause: error,
    })
  }
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(["'`])?/
const QUOTES = ['"', "'", '`']

/** What Node reads over in silence: lines that assign nothing, quotes that are never closed, and text behind one that is. Values may be secrets and are not shown. */
export function envFileProblems(projectDir: string): ProjectProblem[] {
  return ENV_FILES.flatMap((file) => {
    const found: ProjectProblem[] = []
    const lines = textOf(path.join(projectDir, file)).split(/\r?\n/)
    for (let i = 0; i < lines.length; i++) {
      const text = lines[i] ?? ''
      if (/^\s*(?:#|$)/.test(text)) continue
      const [begin = '', name, quote] = ASSIGNMENT.exec(text) ?? []
      if (name === undefined) {
        found.push({
          code: 'bad_env_file',
          message: 'not NAME=value',
          hint: 'Correct the line, or begin it with # as a comment.',
          file,
          line: i + 1,
        })
        continue
      }
      if (quote === undefined) continue
      const isHere = text.indexOf(quote, begin.length) >= 0
      // A value may have several lines.
      const end = isHere ? i : lines.findIndex((later, at) => at > i && later.includes(quote))
      if (end < 0) {
        found.push({
          code: 'bad_env_file',
          message: `the quote of ${name} is never closed`,
          hint: `End the value with ${quote}.`,
          file,
          line: i + 1,
        })
        continue
      }
      const last = lines[end] ?? ''
      const rest = last.slice(last.indexOf(quote, isHere ? begin.length : 0) + 1)
      if (!/^\s*(?:#|$)/.test(rest))
        found.push({
          code: 'bad_env_file',
          message: `the text after the closing quote of ${name} is ignored`,
          hint: `A value ends at the next ${quote}, also after a backslash. Put a value that contains one in other quotes: ${QUOTES.filter((other) => other !== quote).join(' or ')}.`,
          file,
          line: end + 1,
        })
      i = end
    }
    return found
  })
}
