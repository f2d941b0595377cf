import fs from 'node:fs'
import path from 'node:path'
import type { AnyAsset } from '../any-asset.ts'
import { declarationOf, optionsOf } from '../declaration.ts'
import type { CommandCode } from '../project/command-files.ts'

/** Programs whose first argument that is no flag is a script. */
const INTERPRETER = /^(?:python|pypy|node|deno|bun|ruby|perl|Rscript|julia|php|sh|bash|zsh|dash|ksh)[\d.]*$/
/** Programs that run what follows `run`: another program, or a Python script. */
const RUNNER = /^(?:uv|poetry|pipenv|pdm|hatch)$/
/** What follows one of these flags is code or a module, not a file. */
const NO_SCRIPT = /^-(?:c|m|e|p|-eval|-print|-command)$/
/** Without a file ending, the word may be a command of the program, as in `deno run`. */
const SCRIPT = /\.\w+$/

/** A file that the command line of a command names and that does not exist: what the command would fail with. Undefined if there is none. */
export function missingScript(asset: AnyAsset, root: string): { message: string; hint: string } | undefined {
  if (declarationOf(asset)?.kind !== 'command') return undefined
  const { run = [], cwd = '.' } = optionsOf<CommandCode>(asset)
  const folder = path.resolve(root, cwd)
  if (!fs.existsSync(folder))
    return { message: `folder not found: ${cwd}, the \`cwd\` of ${asset.key}`, hint: 'Create it, or correct `cwd`.' }
  const named = scriptIn(run)
  if (named === undefined || fs.existsSync(path.resolve(folder, named))) return undefined
  const where = cwd === '.' ? 'the project folder' : `its \`cwd\`, ${cwd}`
  return {
    message: `${asset.key} runs ${named}, which does not exist`,
    hint: `Create the file, or correct the path: it is relative to ${where}.`,
  }
}

/** The program, if it is named by a path, or the script that an interpreter is given. */
function scriptIn([program, ...others]: readonly unknown[]): string | undefined {
  if (typeof program !== 'string') return undefined
  if (program.includes('/') && !path.isAbsolute(program)) return program
  if (program === 'env')
    return scriptIn(others.slice(others.findIndex((word) => typeof word !== 'string' || !/^\w+=/.test(word))))
  const [run, ran] = others
  // A flag there may take a value, which is no script.
  if (RUNNER.test(program) && run === 'run' && typeof ran === 'string' && !ran.startsWith('-'))
    return SCRIPT.test(ran) ? ran : scriptIn(others.slice(1))
  if (!INTERPRETER.test(path.basename(program))) return undefined
  const first = others.findIndex((word) => typeof word !== 'string' || !word.startsWith('-') || NO_SCRIPT.test(word))
  const script = first < 0 ? undefined : others[first]
  return typeof script === 'string' && !script.startsWith('-') && SCRIPT.test(script) ? script : undefined
}
