import type { WorkEnd } from './work.ts'

/** How a worker process ended, and its last output. */
export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** We killed it ourselves. */
  readonly killed: boolean
  /** The end of what it wrote to standard error by itself, not through `console`. */
  readonly stderr: string
  /** Why it could not be started at all. */
  readonly spawnError?: Error
}

/** The end of work whose process ended before it could report one. */
export function endOfWork(ending: Ending): WorkEnd {
  const stack = ending.stderr.trim()
  return { kind: 'failed', category: 'crashed', message: explainEnding(ending), ...(stack !== '' && { stack }) }
}

/** Why a process ended, for a person who did not see it. */
export function explainEnding({ code, signal, stderr, spawnError }: Ending): string {
  if (spawnError !== undefined) {
    const { message, hint } = explainFailedStart(spawnError)
    return `${message}. ${hint}`
  }
  // V8 prints this and aborts, which is signal SIGABRT here and exit code 134 behind a shell.
  if (/JavaScript heap out of memory|Reached heap limit|invalid (?:array|table) size Allocation failed/i.test(stderr))
    return 'The code ran out of memory: the heap of its worker process reached its limit. Keep less in memory (iterate over a table instead of calling rows()), or raise the limit with --max-old-space-size.'
  // 137 is 128 + 9: a killed process, as shells and containers report it.
  if (signal === 'SIGKILL' || code === 137)
    return `The worker process was killed from outside (${signal ?? 'exit code 137'}), most likely by the system because memory ran out.`
  if (signal !== null)
    return `The worker process was killed by ${signal}${nativeCrash.has(signal) ? ': native code crashed' : ''}.`
  return `The worker process ended with exit code ${code} before it finished its work.`
}

/** Why there is no process, and what to do about it. */
export function explainFailedStart(error: Error): { readonly message: string; readonly hint: string } {
  const { code } = error as NodeJS.ErrnoException
  return {
    message: `No worker process could be started: ${error.message}`,
    hint:
      code === 'ENOENT' || code === 'EACCES'
        ? 'The program or the folder of the project was moved, deleted or locked. Put it back, or start the server again.'
        : 'Check the limits of processes, open files and memory (ulimit -u, ulimit -n), or lower --concurrency.',
  }
}

const nativeCrash = new Set<string>(['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGABRT', 'SIGTRAP'])
