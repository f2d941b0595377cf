import { AsyncLocalStorage } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import type { ErrorDetail } from '../../contract/error-schema.ts'
import type { FromWorker, ToWorker } from '../../contract/pipe.ts'
import { messageOf } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { describeError } from '../../sdk/described-error.ts'
import type { BrokenProject } from '../../sdk/project/project.ts'
import { LEFT_IDLE, TIMED_OUT } from '../attempt-results.ts'
import { lineReader } from '../lines.ts'
import { MARKER } from '../marked.ts'
import { capturePrinting } from './capture.ts'
import { forkWatch } from './forks.ts'
import { pipeWriter } from './pipe-writer.ts'
import { ProcessSecrets } from './process-secrets.ts'
import { type AttemptContext, attemptWork, evaluationWork, type LoadedProject, type ReceivedWork } from './received-work.ts'
import { endWithParent, startWatchdog } from './watchdog.ts'

const PIPE_FD = 3

/** Deeper than the 10 frames of V8, which calls within packages may fill: the author's own come behind them. */
const STACK_FRAMES = 50

/** Higher than a normal process has: when memory runs out, the system ends user code and not the orchestrator. */
const OOM_SCORE = '500'

interface RunningWork {
  readonly work: ReceivedWork
  readonly begunAt: number
  readonly abort: AbortController
}

type Completed = Extract<FromWorker, { type: 'completed' }>

type ServingState = 'loading' | 'serving' | 'spoiled'

/** Where each state may lead. */
const transitions: Transitions<ServingState> = {
  loading: ['serving'],
  serving: ['spoiled'],
  spoiled: [],
}

/**
 * The life of a worker process: loads the project, then works on one attempt or evaluation at a time until its parent is gone.
 *
 * Its states:
 * - `loading`: the project is loaded, and its output is not captured.
 * - `serving`: work is done, and output belongs to it.
 * - `spoiled`: an error went uncaught, so the state of this process is unknown. It exits after the work that runs.
 */
export async function serveWork(
  load: (secrets: ProcessSecrets, onSlow: (file: string) => void) => Promise<LoadedProject | BrokenProject>,
  now: () => number,
): Promise<void> {
  const secrets = new ProcessSecrets()
  const send = pipeWriter(PIPE_FD)
  // Read before user code can change it.
  const marker = process.env[MARKER]
  /** The work whose code is running. Distinguishes leftover code of work that has ended from the code of the next. */
  const owner = new AsyncLocalStorage<RunningWork>()
  let state: ServingState = 'loading'
  let current: RunningWork | undefined
  /** Work that came while other work was running. */
  let waiting: ReceivedWork[] = []
  /** Set between the end of work and the beginning of the next. */
  let turn: NodeJS.Immediate | undefined

  yieldMemoryFirst()
  Error.stackTraceLimit = STACK_FRAMES
  capturePrinting((stream, chunk, level) => {
    const running = owner.getStore() ?? current
    running?.work.print(stream, chunk, level)
    // Output in between is dropped.
    return state !== 'loading'
  })

  const project = await load(secrets, (file) => send({ type: 'still_loading', file }))
  if ('problems' in project) {
    send({ type: 'load_failed', problems: secrets.problems(project.problems) })
    process.exit(LEFT_IDLE)
  }
  const hasForks = forkWatch(marker)
  process.on('uncaughtException', (error) => surprise(error))
  process.on('unhandledRejection', (error) => surprise(error))
  process.on('exit', (code) => {
    if (current !== undefined) fail(current, `The code called process.exit(${code}).`, placeOf(new Error('exit')))
    // Work that was sent to us since then has not begun.
    process.exitCode = LEFT_IDLE
  })
  enter('serving')
  const { manifest, secretVariables } = project
  secrets.declare(secretVariables)
  send({ type: 'loaded', manifest, secret_variables: secretVariables })
  const loaded = project
  const end = (): void => endWithParent(marker)
  new Socket({ fd: PIPE_FD }).on('data', lineReader(receive)).on('error', end).on('close', end)
  startWatchdog(marker)

  function enter(next: ServingState): void {
    state = transition('a worker process', transitions, state, next)
  }

  function receive(line: string): void {
    const message = JSON.parse(line) as ToWorker
    if (message.type === 'run') take(attemptWork(loaded, message.envelope, { now, send, secrets }))
    else if (message.type === 'evaluate') take(evaluationWork(loaded, message.request, secrets))
    else if (message.type === 'take_back') giveBack()
    else if (message.id === current?.work.id) {
      const name = message.reason === TIMED_OUT ? 'TimeoutError' : 'AbortError'
      current.abort.abort(new DOMException(message.reason, name))
    } else {
      const unwanted = waiting.find(({ id }) => id === message.id)
      if (unwanted === undefined) return
      waiting = waiting.filter((work) => work !== unwanted)
      send({ type: 'completed', id: message.id, took_ms: 0, result: unwanted.cancelled() })
    }
  }

  function take(work: ReceivedWork): void {
    waiting.push(work)
    if (current === undefined && turn === undefined) begin()
  }

  function begin(): void {
    turn = undefined
    const work = waiting.shift()
    if (work !== undefined) void run(work)
  }

  /** The work whose turn is next stays: the pool counts it as begun once it has received the result before it. */
  function giveBack(): void {
    const returned = waiting.splice(turn === undefined ? 0 : 1)
    send({ type: 'returned', ids: returned.map(({ id }) => id) })
  }

  async function run(work: ReceivedWork): Promise<void> {
    const running: RunningWork = { work, begunAt: performance.now(), abort: new AbortController() }
    current = running
    const context: AttemptContext = {
      signal: running.abort.signal,
      log: (entry) => work.log(entry),
      print: (stream, chunk) => work.print(stream, chunk),
    }
    try {
      complete(running, await owner.run(running, () => work.run(context)))
    } catch (error) {
      const { message, ...detail } = describeError(error, loaded.describing)
      fail(running, message, detail)
    }
    // Processes that user code left behind end with this one: its parent ends them.
    if (state === 'spoiled' || hasForks()) process.exit()
    // In a turn of its own: errors that this work left behind, and messages of the parent, come first.
    if (waiting.length > 0) turn = setImmediate(begin)
  }

  function fail(running: RunningWork, message: string, detail: ErrorDetail): void {
    complete(running, running.work.failed('crashed', message, detail))
  }

  function complete(running: RunningWork, reported: Completed['result']): void {
    if (current !== running) return
    current = undefined
    const { work } = running
    const result = secrets.result(reported)
    work.end(result)
    const ended = { type: 'completed', id: work.id, took_ms: performance.now() - running.begunAt } as const
    try {
      send({ ...ended, result })
    } catch (error) {
      send({ ...ended, result: work.failed('invalid', secrets.newest(`The result cannot be sent: ${messageOf(error)}`)) })
    }
  }

  /** An error went uncaught. */
  function surprise(error: unknown): void {
    if (state === 'serving') enter('spoiled')
    const running = owner.getStore() ?? current
    // An error of work that has ended does not fail what is running.
    if (running !== undefined && running !== current && current !== undefined) return
    const { message, ...detail } = describeError(error, loaded.describing)
    if (current !== undefined) fail(current, `An error was not caught: ${message}`, detail)
    process.exit()
  }

  /** Where the code was. */
  function placeOf(error: Error): ErrorDetail {
    return { stack: describeError(error, loaded.describing).stack }
  }
}

function yieldMemoryFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', OOM_SCORE)
  } catch {
    // This is not Linux, or we lack permission: the system then chooses on its own.
  }
}
