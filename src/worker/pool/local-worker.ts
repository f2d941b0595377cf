import { ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { FromWorker, ToWorker } from '../../contract/pipe.ts'
import { messageOf } from '../../lib/error.ts'
import { signalGroup } from '../group.ts'
import { lineReader } from '../lines.ts'
import { endMarked, MARKER } from '../marked.ts'
import type { Ending } from './ending.ts'
import type { Job } from './job.ts'
import { hasSpareFiles, SPARE_FILES } from './spare-files.ts'

/** How to start a worker process. */
export interface WorkerCommand {
  readonly file: string
  readonly args: readonly string[]
  readonly cwd?: string
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** `{folder}:{instance}`: marks the process and whatever it starts, so that they can be found when nobody remembers them. */
  readonly marker?: string
}

export interface WorkerEvents {
  /** It said something. Logs and results are about the job it has. */
  said(worker: LocalWorker, message: FromWorker): void
  /** It has ended, everything it said has been heard, and nothing that it started is left. */
  gone(worker: LocalWorker, ending: Ending): void
}

/** V8's report of a full heap is some 4 kB, with the sentence that matters in the middle. */
const STDERR_TAIL = 8 * 1024

/** What a killed grandchild may still hold of our pipes must not make the pool wait. */
const DRAIN_MS = 200

let workers = 0

/** One worker process as the orchestrator sees it: a group of its own, two pipes to talk and to hold, two to listen. */
export class LocalWorker {
  /** Undefined when it could not be started; why is told by `gone`. */
  readonly pid: number | undefined
  /** Attempts it has begun. */
  served = 0
  /** It gets no more work: what it is doing is the last. */
  leaving = false
  /** We ended it ourselves. */
  killed = false
  /** What it was given and has not ended, in order: the first is what it runs, the others wait in it. */
  jobs: Job[] = []
  /** It was asked for those that wait, and has not answered. */
  askedBack = false
  idleSince = 0
  readonly #events: WorkerEvents
  /** Its own, and that of everything it starts. */
  readonly #marker: string | undefined
  readonly #child: ChildProcess
  readonly #pipe: Socket | undefined
  #stderr = ''
  #spawnError: Error | undefined
  /** Said in this turn of the event loop, not written yet. */
  #unsent = ''
  #distrusted = false
  #gone = false

  constructor(command: WorkerCommand, events: WorkerEvents, { sparing }: { readonly sparing: boolean }) {
    this.#events = events
    // With a colon at the end: that of the first worker is not the beginning of that of the tenth.
    this.#marker = command.marker && `${command.marker}:${++workers}:`
    this.#child = start(command, sparing, {
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
      env: { ...process.env, ...command.env, ...(this.#marker !== undefined && { [MARKER]: this.#marker }) },
      // A group of its own: what user code starts dies with it, and Ctrl-C in a terminal reaches only us.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
    })
    this.pid = this.#child.pid
    // There are none when the system had no more files to open; the error comes by itself then.
    const [, stdout, stderr, pipe, lifeline] = (this.#child.stdio ?? []) as unknown as (Socket | undefined)[]
    const sockets = [stdout, stderr, pipe, lifeline].filter((socket) => socket !== undefined)
    this.#pipe = pipe
    // A process that ends while it is written to or read from is heard of by its exit.
    for (const socket of sockets) socket.on('error', () => undefined)
    stdout?.on('data', (chunk: Buffer) => this.job?.print('stdout', chunk))
    stderr?.on('data', (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-STDERR_TAIL)
      this.job?.print('stderr', chunk)
    })
    pipe?.on(
      'data',
      lineReader((line) => this.#hear(line)),
    )
    this.#awaitEnd(sockets)
  }

  get job(): Job | undefined {
    return this.jobs[0]
  }

  /** It will hear of something in a moment anyway. */
  get isBeingWoken(): boolean {
    return this.#unsent !== ''
  }

  give(job: Job): void {
    this.jobs.push(job)
    this.#send({ type: 'run', envelope: job.envelope })
    if (this.jobs.length === 1) this.#begin(job)
  }

  /** One has ended, or never will begin. When it was the first, the next begins. */
  ended(job: Job): void {
    const place = this.jobs.indexOf(job)
    this.jobs.splice(place, 1)
    if (place === 0 && this.job !== undefined) this.#begin(this.job)
  }

  /** Asks for all that wait in it. */
  askBack(): void {
    this.askedBack = true
    this.#send({ type: 'take_back' })
  }

  /** It gave these back, never the first. */
  returned(attemptIds: ReadonlySet<string>): readonly Job[] {
    this.askedBack = false
    const returned = this.jobs.filter(({ id }) => attemptIds.has(id))
    this.jobs = this.jobs.filter(({ id }) => !attemptIds.has(id))
    return returned
  }

  askToStop(attemptId: string, reason: string): void {
    this.#send({ type: 'cancel', attempt_id: attemptId, reason })
  }

  /** Ends the process and everything it started, now. */
  kill(): void {
    this.leaving = true
    this.killed = true
    if (this.pid === undefined || this.#gone) return
    if (!signalGroup(this.pid, 'SIGKILL')) this.#child.kill('SIGKILL')
  }

  /** Memory it holds, in bytes; zero where the system does not tell. */
  residentBytes(): number {
    try {
      const status = readFileSync(`/proc/${this.pid}/status`, 'latin1')
      return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024
    } catch {
      return 0
    }
  }

  #begin(job: Job): void {
    this.served++
    this.#stderr = ''
    job.begin()
  }

  #hear(line: string): void {
    if (this.#gone || this.#distrusted) return
    let message: FromWorker
    try {
      message = JSON.parse(line) as FromWorker
    } catch (error) {
      // User code can reach the pipe too. A process that writes nonsense there gets no more work, and its results are not trusted.
      this.#distrusted = true
      this.#stderr += `\nfile descriptor 3 belongs to Servo, but something else was written to it: ${messageOf(error)}`
      this.kill()
      return
    }
    this.#events.said(this, message)
  }

  #send(message: ToWorker): void {
    // Messages of one turn leave in one write: waking a process costs more than a small attempt.
    if (this.#unsent === '') {
      process.nextTick(() => {
        this.#pipe?.write(this.#unsent)
        this.#unsent = ''
      })
    }
    this.#unsent += `${JSON.stringify(message)}\n`
  }

  #awaitEnd(sockets: readonly Socket[]): void {
    const finish = (code: number | null, signal: NodeJS.Signals | null): void => {
      if (this.#gone) return
      this.#gone = true
      this.leaving = true
      for (const socket of sockets) socket.destroy()
      const ending = { code, signal, stderr: this.#stderr }
      this.#events.gone(this, this.#spawnError === undefined ? ending : { ...ending, spawnError: this.#spawnError })
    }
    this.#child.on('error', (error) => {
      if (this.pid !== undefined) return
      this.#spawnError = error
      finish(null, null)
    })
    this.#child.once('exit', (code, signal) => {
      // The leader is gone; what user code forked goes with it, and what has left the group too.
      if (this.pid !== undefined) signalGroup(this.pid, 'SIGKILL')
      if (this.#marker !== undefined) endMarked(MARKER, { prefix: this.#marker })
      setTimeout(() => finish(code, signal), DRAIN_MS)
    })
    this.#child.once('close', finish)
  }
}

/** Node tells of a full table of files by an event, and throws when memory is short: here both are told by the event. */
function start({ file, args }: WorkerCommand, sparing: boolean, options: SpawnOptions): ChildProcess {
  try {
    // A server that gives its last files to workers cannot write down what they make.
    if (sparing && !hasSpareFiles())
      throw new Error(`the server may open no more than ${SPARE_FILES} other files, which it needs itself`)
    return spawn(file, args, options)
  } catch (error) {
    const none = new ChildProcess()
    process.nextTick(() => none.emit('error', error))
    return none
  }
}
