import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { PROGRAM_ERROR } from '../../contract/error-detail.ts'
import { hasErrorCode } from '../../lib/error.ts'
import { LONGEST_SECRET, redactedEnd } from '../../lib/redactor.ts'
import { type DescribingErrors, errorOfProgram } from '../../sdk/described-error.ts'
import { invalid } from '../../sdk/invalid.ts'
import { groupMembers } from '../group.ts'

export interface Program {
  /** Its name or path, and its arguments. */
  readonly words: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  print(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
  readonly describing: DescribingErrors
}

/** From SIGTERM to SIGKILL. Shorter than the pool waits by default before it kills the whole worker. */
const GRACE_MS = 3_000

/** A daemon that the program left behind may hold its output open for ever. What the program itself wrote has arrived by then. */
const DRAIN_MS = 500

/** How much of standard error an error quotes: the log has all of it. */
const TAIL = 2 * 1024

/** Runs a program to its end, and throws if it failed. When it is stopped, the processes that it started are stopped too. */
export async function runProgram({ words, cwd, env, signal, print, describing }: Program): Promise<void> {
  signal.throwIfAborted()
  const [file = '', ...args] = words
  // In the group of this worker, which has one attempt at a time: ending the worker ends the program too.
  const child: ChildProcess = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  // A program that could not be started has no streams. Its error event follows.
  child.stdout?.on('data', (chunk: Buffer) => print('stdout', chunk))
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString('utf8')).slice(-(TAIL + LONGEST_SECRET))
    print('stderr', chunk)
  })
  let killing: NodeJS.Timeout | undefined
  let isKilled = false
  const stop = (): void => {
    signalProgram(child.pid, 'SIGTERM')
    killing = setTimeout(() => {
      isKilled = true
      signalProgram(child.pid, 'SIGKILL')
    }, GRACE_MS)
  }
  signal.addEventListener('abort', stop, { once: true })
  try {
    const [code, ended] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (...how) => resolve(how))
      child.once('exit', (...how) => setTimeout(() => resolve(how), DRAIN_MS).unref())
    })
    if (code !== 0) {
      const how = isKilled ? `did not stop when ${whyStopped(signal)}, so it was killed` : endOf(code, ended)
      const error = errorOfProgram(`${file} ${how}`, redactedEnd(stderr, TAIL, describing.redact ?? String).trim())
      error.name = PROGRAM_ERROR
      throw error
    }
  } catch (error) {
    if (hasErrorCode(error, 'ENOENT')) throw missing(file, cwd)
    throw hasErrorCode(error, 'EACCES') ? notExecutable(file) : error
  } finally {
    clearTimeout(killing)
    signal.removeEventListener('abort', stop)
    child.stdout?.destroy()
    child.stderr?.destroy()
  }
}

/** The program and all that it started: the group of this worker without the worker itself. */
function signalProgram(pid: number | undefined, signal: NodeJS.Signals): void {
  const members = groupMembers(process.pid).filter((member) => member !== process.pid)
  for (const target of new Set([...(pid === undefined ? [] : [pid]), ...members])) {
    try {
      process.kill(target, signal)
    } catch {
      // It has ended by itself.
    }
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): string {
  const killed = signal === 'SIGKILL' || code === 137
  const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
  return `${how}${killed ? ', most likely because memory ran out' : ''}`
}

const whyStopped = ({ reason }: AbortSignal): string =>
  reason instanceof Error && reason.name === 'TimeoutError' ? 'its timeout had passed' : 'the run was cancelled'

const notExecutable = (file: string): Error =>
  invalid('not_executable', `${file} is not executable`, `Run chmod +x ${file}, or name its interpreter: ['sh', '${file}'].`)

function missing(file: string, cwd: string): Error {
  return existsSync(cwd)
    ? invalid('no_such_program', `program ${file} not found`, 'Install it on the worker, or write its full path.')
    : invalid('no_such_folder', `${file} cannot run in ${cwd}: the folder does not exist`, 'Create the folder, or change cwd.')
}
