import { ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { FromWorker, ToWorker } from '../../contract/pipe.ts'
import { assert } from '../../lib/assert.ts'
import { messageOf } from '../../lib/error.ts'
import { LONGEST_SECRET, Redactor, redactedEnd, secretsOf } from '../../lib/redactor.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { signalGroup } from '../group.ts'
import { lineReader } from '../lines.ts'
import { endMarked, MARKER } from '../marked.ts'
import type { Ending } from './ending.ts'
import type { Job } from './job.ts'
import { readMessage } from './read-message.ts'
import { hasSpareFiles, SPARE_FILES } from './spare-files.ts'

/** How to start a worker process. */
export interface WorkerCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd?: string
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** `{folder}:{instance}`: marks the process and everything it starts, so that a later server can find and end them. */
  readonly marker?: string
}

export interface WorkerEvents {
  /** The process sent a message. */
  received(worker: LocalWorker, message: FromWorker): void
  /** The process has ended, all its messages have been received, and no process that it started is left. */
  gone(worker: LocalWorker, ending: Ending): void
}

/** V8's report of a full heap is some 4 kB, with the sentence that matters in the middle. */
const STDERR_TAIL = 8 * 1024

/** Several times the manifest of the largest project. A string cannot hold much more, and a server must not try. */
const MAX_MESSAGE_BYTES = 256 * 2 ** 20

/** A killed grandchild may hold our pipes open for longer; the pool does not wait for that. */
const DRAIN_MS = 200

type WorkerState = 'open' | 'leaving' | 'killed' | 'distrusted' | 'gone'

/** Where each state may lead. */
const transitions: Transitions<WorkerState> = {
  open: ['leaving', 'killed', 'distrusted', 'gone'],
  leaving: ['killed', 'distrusted', 'gone'],
  killed: ['distrusted', 'gone'],
  distrusted: ['gone'],
  gone: [],
}

let workers = 0

/**
 * One worker process as the orchestrator sees it: a process group, a pipe for messages, a pipe whose end shows the worker that
 * the orchestrator is gone, and its two output streams.
 *
 * Its states:
 * - `open`: it may be given work. Its generation knows when it has loaded the project.
 * - `leaving`: it gets no more work, and is killed after what it has.
 * - `killed`: we have killed it. Messages that it sent before are still received.
 * - `distrusted`: we have killed it because it wrote nonsense to its pipe, and its messages are not read any more.
 * - `gone`: it has ended, or could not be started at all.
 */
export class LocalWorker {
  /** Undefined when the process could not be started; `gone` has the reason. */
  readonly pid: number | undefined
  /** By the clock of this process. */
  readonly startedAt = performance.now()
  readonly #events: WorkerEvents
  /** Its output does not pass its own redaction if it does not pass `console`, or if the process crashes. */
  readonly #redactor = new Redactor()
  readonly #environment: NodeJS.ProcessEnv
  #secretVariables: readonly string[] = []
  /** Marks this process and everything it starts. */
  readonly #marker: string | undefined
  readonly #child: ChildProcess
  readonly #pipe: Socket | undefined
  #state: WorkerState = 'open'
  #jobs: Job[] = []
  #served = 0
  /** True between `take_back` and its answer. */
  #askedBack = false
  #stderr = ''
  /** Messages of this turn of the event loop, not written yet. */
  #unsent = ''

  constructor(command: WorkerCommand, events: WorkerEvents, { sparing }: { readonly sparing: boolean }) {
    this.#events = events
    // It ends with a colon, or the marker of the first worker would be a prefix of that of the tenth.
    this.#marker = command.marker && `${command.marker}:${++workers}:`
    this.#environment = { ...process.env, ...command.env, ...(this.#marker !== undefined && { [MARKER]: this.#marker }) }
    this.#child = start(command, sparing, {
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
      env: this.#environment,
      // A group of its own: what user code starts dies with it, and Ctrl-C in a terminal reaches only us.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    })
    this.pid = this.#child.pid
    // A process that could not be started has no streams. Its error event follows.
    const [, stdout, stderr, pipe, lifeline] = (this.#child.stdio ?? []) as unknown as (Socket | undefined)[]
    const sockets = [stdout, stderr, pipe, lifeline].filter((socket) => socket !== undefined)
    this.#pipe = pipe
    // A process that ends while it is written to or read from makes its pipes fail. Its exit has everything that matters.
    for (const socket of sockets) socket.on('error', () => undefined)
    stdout?.on('data', (chunk: Buffer) => this.job?.print('stdout', chunk, this.#redact))
    stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-(STDERR_TAIL + LONGEST_SECRET))
      this.job?.print('stderr', chunk, this.#redact)
    })
    const read = lineReader((line) => this.#receive(line), {
      bytes: MAX_MESSAGE_BYTES,
      exceeded: () => this.#distrust(`more than ${MAX_MESSAGE_BYTES / 2 ** 20} MB without an end of line`),
    })
    // What was printed before a message was sent is read before it, although both may be ready together.
    pipe?.on('data', (chunk: Buffer) => setImmediate(read, chunk))
    this.#awaitEnd(sockets)
  }

  /** Work that it has and has not ended, in order: it runs the first, the others wait in it. */
  get jobs(): readonly Job[] {
    return this.#jobs
  }

  get job(): Job | undefined {
    return this.#jobs[0]
  }

  /** How much work it has begun. */
  get served(): number {
    return this.#served
  }

  get takesWork(): boolean {
    return this.#state === 'open'
  }

  /** True while a message to it waits for the end of this turn: another one costs next to nothing. */
  get isBeingWoken(): boolean {
    return this.#unsent !== ''
  }

  give(job: Job, expectedMs: number): void {
    assert(this.takesWork, `a worker that is ${this.#state} takes no work`)
    job.queue(this, expectedMs)
    this.#jobs.push(job)
    this.#send(job.work.message)
    if (this.#jobs.length === 1) this.#begin(job)
  }

  /** A job has ended, or never will begin. When it was the first, the next begins. */
  ended(job: Job): void {
    const place = this.#jobs.indexOf(job)
    this.#jobs.splice(place, 1)
    if (place === 0 && this.job !== undefined) this.#begin(this.job)
  }

  /** Requests all jobs that wait in it back, unless such a request is open. */
  askBack(): void {
    if (this.#askedBack) return
    this.#askedBack = true
    this.#send({ type: 'take_back' })
  }

  /** Removes the jobs that it gave back. The first is none of them: it has begun. */
  returned(ids: ReadonlySet<string>): readonly Job[] {
    this.#askedBack = false
    const returned = this.#jobs.slice(1).filter(({ id }) => ids.has(id))
    this.#jobs = this.#jobs.filter((job) => !returned.includes(job))
    return returned
  }

  /** Removes all jobs from a process that is gone. */
  takeJobs(): readonly Job[] {
    assert(this.#state === 'gone', `a worker that is ${this.#state} keeps its jobs`)
    const jobs = this.#jobs
    this.#jobs = []
    return jobs
  }

  askToStop(id: string, reason: string): void {
    this.#send({ type: 'cancel', id, reason })
  }

  /** Gives it no more work: it ends after what it has, or now. */
  leave(): void {
    if (this.#state === 'open') this.#enter('leaving')
    if (this.job === undefined) this.kill()
  }

  /** Ends the process and everything it started, now. */
  kill(): void {
    if (this.#state === 'gone') return
    if (!this.#isKilled) this.#enter('killed')
    if (this.pid === undefined) return
    if (!signalGroup(this.pid, 'SIGKILL')) this.#child.kill('SIGKILL')
  }

  /** Looked for when something is printed: most processes print only by `console`. */
  readonly #redact = (text: string): string => {
    this.#redactor.learn(secretsOf(this.#environment, this.#secretVariables))
    return this.#redactor.text(text)
  }

  /** Memory it holds, in bytes; zero where the system has no /proc. */
  residentBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, 'latin1')
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024
    } catch {
      return 0
    }
  }

  get #isKilled(): boolean {
    return this.#state === 'killed' || this.#state === 'distrusted'
  }

  #enter(next: WorkerState): void {
    this.#state = transition('a worker', transitions, this.#state, next)
  }

  #begin(job: Job): void {
    this.#served++
    this.#stderr = ''
    job.begin()
  }

  #receive(line: string): void {
    if (this.#state === 'gone' || this.#state === 'distrusted') return
    let message: FromWorker
    try {
      message = readMessage(line)
    } catch (error) {
      this.#distrust(messageOf(error))
      return
    }
    if (message.type === 'loaded') this.#secretVariables = message.secret_variables ?? []
    this.#events.received(this, message)
  }

  /** User code can reach the pipe too. A process that writes nonsense there gets no more work, and its results are not trusted. */
  #distrust(why: string): void {
    if (this.#state === 'gone' || this.#state === 'distrusted') return
    this.#enter('distrusted')
    this.#stderr += `\nfile descriptor 3 belongs to Servo, but something else was written to it: ${why}`
    this.kill()
  }

  #send(message: ToWorker): void {
    // Messages of one turn share one write: to wake a process costs more than a small piece of work.
    if (this.#unsent === '') {
      process.nextTick(() => {
        this.#pipe?.write(this.#unsent)
        this.#unsent = ''
      })
    }
    this.#unsent += `${JSON.stringify(message)}\n`
  }

  #awaitEnd(sockets: readonly Socket[]): void {
    const finish = (code: number | null, signal: NodeJS.Signals | null, spawnError?: Error): void => {
      if (this.#state === 'gone') return
      const killed = this.#isKilled
      this.#enter('gone')
      for (const socket of sockets) socket.destroy()
      const stderr = redactedEnd(this.#stderr, STDERR_TAIL, this.#redact)
      this.#events.gone(this, { code, signal, killed, stderr, ...(spawnError !== undefined && { spawnError }) })
    }
    this.#child.on('error', (error) => {
      if (this.pid === undefined) finish(null, null, error)
    })
    this.#child.once('exit', (code, signal) => {
      // The worker has ended. Its descendants end with it, also those that left its group.
      if (this.pid !== undefined) signalGroup(this.pid, 'SIGKILL')
      if (this.#marker !== undefined) endMarked(MARKER, { prefix: this.#marker })
      setTimeout(() => finish(code, signal), DRAIN_MS)
    })
    this.#child.once('close', (code, signal) => finish(code, signal))
  }
}

/** Node emits an error when no more files can be opened, and throws one when memory is short. This emits both. */
function start({ file, args }: WorkerCommand, sparing: boolean, options: SpawnOptions): ChildProcess {
  try {
    // A server that gives its last file descriptors to workers cannot write their results.
    if (sparing && !hasSpareFiles())
      throw new Error(`the server may open no more than ${SPARE_FILES} other files, which it needs itself`)
    return spawn(file, args, options)
  } catch (error) {
    const none = new ChildProcess()
    process.nextTick(() => none.emit('error', error))
    return none
  }
}
