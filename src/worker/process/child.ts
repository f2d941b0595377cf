import { AsyncLocalStorage } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import type { AttemptResultInput, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { LogEntry, ToWorker } from '../../contract/pipe.ts'
import type { ProjectManifestInput } from '../../contract/project-manifest.ts'
import { messageOf } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import type { BrokenProject } from '../../sdk/project/project.ts'
import { cancelledResult, failedResult, LEFT_IDLE, TIMED_OUT } from '../attempt-results.ts'
import { lineReader } from '../lines.ts'
import { MARKER } from '../marked.ts'
import { AttemptLog } from './attempt-log.ts'
import { capturePrinting } from './capture.ts'
import { forkWatch } from './forks.ts'
import { pipeWriter } from './pipe-writer.ts'
import { endWithParent, startWatchdog } from './watchdog.ts'

/** The services that a worker process offers an attempt. */
export interface AttemptContext {
  readonly signal: AbortSignal
  log(entry: LogEntry): void
  /** Passes on the output of a program that the attempt runs. */
  print(stream: 'stdout' | 'stderr', chunk: Uint8Array): void
}

export interface LoadedProject {
  readonly manifest: ProjectManifestInput
  execute(envelope: DispatchEnvelope, context: AttemptContext): Promise<AttemptResultInput>
}

const PIPE_FD = 3

/** Higher than a normal process has: when memory runs out, the system ends user code and not the orchestrator. */
const OOM_SCORE = '500'

interface RunningAttempt {
  readonly id: string
  readonly begunAt: number
  readonly abort: AbortController
  readonly log: AttemptLog
}

type ServingState = 'loading' | 'serving' | 'spoiled'

/** Where each state may lead. */
const transitions: Transitions<ServingState> = {
  loading: ['serving'],
  serving: ['spoiled'],
  spoiled: [],
}

/**
 * The life of a worker process: loads the project, then runs one attempt at a time until its parent is gone.
 *
 * Its states:
 * - `loading`: the project is loaded, and its its output is not captured.
 * - `serving`: attempts are run, and output belongs to them.
 * - `spoiled`: an error went uncaught, so the state of this process is unknown. It exits after the attempt that runs.
 */
export async function serveAttempts(load: () => Promise<LoadedProject | BrokenProject>, now: () => number): Promise<void> {
  const send = pipeWriter(PIPE_FD)
  // Read before user code can change it.
  const marker = process.env[MARKER]
  /** The attempt whose code is running. Distinguishes leftover code of an ended attempt from the code of the next. */
  const owner = new AsyncLocalStorage<RunningAttempt>()
  let state: ServingState = 'loading'
  let current: RunningAttempt | undefined
  /** Attempts that came while another was running. */
  let waiting: DispatchEnvelope[] = []
  /** Set between the end of an attempt and the beginning of the next. */
  let turn: NodeJS.Immediate | undefined

  yieldMemoryFirst()
  capturePrinting((stream, chunk, level) => {
    const attempt = owner.getStore() ?? current
    attempt?.log.print(stream, chunk, level)
    // Output between attempts is dropped.
    return state !== 'loading'
  })

  const project = await load()
  if ('problems' in project) {
    send({ type: 'load_failed', problems: project.problems })
    process.exit(LEFT_IDLE)
  }
  const hasForks = forkWatch(marker)
  process.on('uncaughtException', (error) => surprise(error))
  process.on('unhandledRejection', (error) => surprise(error))
  process.on('exit', (code) => {
    if (current !== undefined)
      complete(current, failedResult('crashed', `The code called process.exit(${code}).`, new Error().stack))
    // Attempts that were sent to us since then have not begun.
    process.exitCode = LEFT_IDLE
  })
  enter('serving')
  send({ type: 'loaded', manifest: project.manifest })
  const { execute } = project
  const end = (): void => endWithParent(marker)
  new Socket({ fd: PIPE_FD }).on('data', lineReader(receive)).on('error', end).on('close', end)
  startWatchdog(marker)

  function enter(next: ServingState): void {
    state = transition('a worker process', transitions, state, next)
  }

  function receive(line: string): void {
    const message = JSON.parse(line) as ToWorker
    if (message.type === 'run') {
      waiting.push(message.envelope)
      if (current === undefined && turn === undefined) begin()
    } else if (message.type === 'take_back') giveBack()
    else if (message.attempt_id === current?.id) {
      const name = message.reason === TIMED_OUT ? 'TimeoutError' : 'AbortError'
      current.abort.abort(new DOMException(message.reason, name))
    } else if (waiting.some(({ attempt_id }) => attempt_id === message.attempt_id)) {
      waiting = waiting.filter(({ attempt_id }) => attempt_id !== message.attempt_id)
      send({ type: 'completed', attempt_id: message.attempt_id, took_ms: 0, result: cancelledResult() })
    }
  }

  function begin(): void {
    turn = undefined
    const envelope = waiting.shift()
    if (envelope !== undefined) void run(envelope)
  }

  /** The attempt whose turn is next stays: the pool counts it as begun once it has received the result before it. */
  function giveBack(): void {
    const returned = waiting.splice(turn === undefined ? 0 : 1)
    send({ type: 'returned', attempt_ids: returned.map(({ attempt_id }) => attempt_id) })
  }

  async function run(envelope: DispatchEnvelope): Promise<void> {
    const id = envelope.attempt_id
    const log = new AttemptLog(now, (entries) => send({ type: 'log', attempt_id: id, entries }))
    const attempt: RunningAttempt = { id, begunAt: performance.now(), abort: new AbortController(), log }
    current = attempt
    const context: AttemptContext = {
      signal: attempt.abort.signal,
      log: (entry) => log.add(entry),
      print: (stream, chunk) => log.print(stream, chunk),
    }
    let result: AttemptResultInput
    try {
      result = await owner.run(attempt, () => execute(envelope, context))
    } catch (error) {
      result = failedResult('crashed', messageOf(error), error instanceof Error ? error.stack : undefined)
    }
    complete(attempt, result)
    // Processes that user code left behind end with this one: its parent ends them.
    if (state === 'spoiled' || hasForks()) process.exit()
    // In a turn of its own: errors that this attempt left behind, and messages of the parent, come first.
    if (waiting.length > 0) turn = setImmediate(begin)
  }

  function complete(attempt: RunningAttempt, result: AttemptResultInput): void {
    if (current !== attempt) return
    current = undefined
    attempt.log.end()
    const ended = { type: 'completed', attempt_id: attempt.id, took_ms: performance.now() - attempt.begunAt } as const
    try {
      send({ ...ended, result })
    } catch (error) {
      send({ ...ended, result: failedResult('invalid', `The result cannot be sent: ${messageOf(error)}`) })
    }
  }

  /** An error went uncaught. */
  function surprise(error: unknown): void {
    if (state === 'serving') enter('spoiled')
    const attempt = owner.getStore() ?? current
    // An error of an attempt that has ended does not fail the running one.
    if (attempt !== undefined && attempt !== current && current !== undefined) return
    const stack = error instanceof Error ? error.stack : undefined
    if (current !== undefined) complete(current, failedResult('crashed', `An error was not caught: ${messageOf(error)}`, stack))
    process.exit()
  }
}

function yieldMemoryFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', OOM_SCORE)
  } catch {
    // This is not Linux, or we lack permission: the system then chooses on its own.
  }
}
