import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { hasErrorCode } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'

export interface TypeCheck {
  readonly problems: readonly ProjectProblem[]
  /** The compiler that was asked; undefined if there is none. */
  readonly version?: string
  /** Why types were not checked. */
  readonly unchecked?: string
}

/** Checks types with the compiler of the project, as its tsconfig.json says. */
export async function checkTypes(projectDir: string): Promise<TypeCheck> {
  const compiler = compilerOf(projectDir)
  if (compiler === 'no_package') return { problems: [], unchecked: 'types: package.json cannot be read' }
  if (compiler === undefined)
    return { problems: [], unchecked: 'types: typescript is not installed (npm install --save-dev typescript @types/node)' }
  if (!existsSync(join(projectDir, 'tsconfig.json')))
    return { problems: [], unchecked: 'types: no tsconfig.json beside servo.config.ts (servo init writes one)' }
  const output = await outputOf([compiler.file, '--noEmit', '--pretty', 'false', '-p', 'tsconfig.json'], projectDir)
  return { problems: problemsIn(output), version: compiler.version }
}

/** The compiler that is installed in the project. Without a readable package.json nothing that is installed can be found. */
function compilerOf(projectDir: string): { file: string; version: string } | 'no_package' | undefined {
  try {
    const description = createRequire(join(projectDir, 'package.json')).resolve('typescript/package.json')
    const { bin, version }: { bin?: unknown; version?: unknown } = JSON.parse(readFileSync(description, 'utf8'))
    const tsc = isObject(bin) ? bin['tsc'] : undefined
    return typeof tsc === 'string' ? { file: join(dirname(description), tsc), version: String(version) } : undefined
  } catch (error) {
    return hasErrorCode(error, 'ERR_INVALID_PACKAGE_CONFIG') ? 'no_package' : undefined
  }
}

async function outputOf(args: readonly string[], cwd: string): Promise<string> {
  let output = ''
  const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  // A compiler that fails without a word about the code has failed itself.
  return code !== 0 && !ABOUT_CODE.test(output) ? `error TS0: the compiler exited with ${code}: ${output.trim()}` : output
}

const ABOUT_CODE = /^(?:(.+)\((\d+),(\d+)\): )?error TS(\d+): (.*)$/m

/** `assets/orders.ts(3,5): error TS2322: …`, with further lines indented below. */
function problemsIn(output: string): ProjectProblem[] {
  const problems: (ProjectProblem & { message: string })[] = []
  for (const line of output.split(/\r?\n/)) {
    const found = ABOUT_CODE.exec(line)
    const last = problems.at(-1)
    if (found === null) {
      if (last !== undefined && /^\s+\S/.test(line)) last.message += `\n${line}`
      continue
    }
    const [, file, at, column, number, message] = found
    problems.push({
      code: 'type_error',
      message: `${message} (TS${number})`,
      ...(file !== undefined && { file, line: Number(at), column: Number(column) }),
    })
  }
  return problems
}
