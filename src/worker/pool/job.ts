import type { LogEntry } from '../../contract/pipe.ts'
import { assert } from '../../lib/assert.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { MAX_TIMER_MS } from '../../ports/clock.ts'
import { TIMED_OUT } from '../attempt-results.ts'
import { PrintedOutput } from '../printed-text.ts'
import { CANCELLED, type Work, type WorkEnd } from './work.ts'

export interface JobOptions {
  /** Work that takes longer than this is asked to stop, then killed. */
  readonly timeoutMs?: number
  /** Called when the work begins: a process has it, and nothing runs there before it. */
  readonly onStart?: () => void
  readonly onLog?: (entries: readonly LogEntry[]) => void
}

/** The process that runs a job, as the job sees it. */
export interface JobProcess {
  askToStop(id: string, reason: string): void
  kill(): void
}

type JobState =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'queued'; readonly process: JobProcess }
  | { readonly kind: 'unwanted'; readonly process: JobProcess; readonly reason: string; readonly graceMs: number }
  | { readonly kind: 'running'; readonly process: JobProcess; readonly begunAt: number }
  | {
      readonly kind: 'stopping'
      readonly process: JobProcess
      readonly begunAt: number
      readonly why: 'timeout' | 'cancel'
      readonly killAt: number
    }
  | { readonly kind: 'ended' }

/** Where each state may lead. */
const transitions: Transitions<JobState['kind']> = {
  waiting: ['queued', 'ended'],
  queued: ['running', 'unwanted', 'waiting', 'ended'],
  unwanted: ['running', 'unwanted', 'waiting', 'ended'],
  running: ['stopping', 'waiting', 'ended'],
  stopping: ['stopping', 'waiting', 'ended'],
  ended: [],
}

/** Work that finds its process leaving goes to the next. More than a few in a row are not a coincidence. */
const MAX_MOVES = 5

/**
 * A piece of work on its way through the pool.
 *
 * Its states:
 * - `waiting`: no process has it.
 * - `queued`: a process has it, and does other work first.
 * - `unwanted`: the same, and it was cancelled. Its grace starts when it begins: a queued job must not kill the one ahead.
 * - `running`: it has begun, and its timeout is counted.
 * - `stopping`: it was asked to stop, and its process is killed when the grace is over.
 * - `ended`: how it ended is known.
 *
 * A process that leaves before it comes to a job, or takes none of it, gives it back: then the job is `waiting` again.
 */
export class Job {
  readonly work: Work
  /** When it came, by the clock of the process. */
  readonly since = performance.now()
  readonly #options: JobOptions
  readonly #now: () => number
  readonly #graceMs: number
  readonly #ended = Promise.withResolvers<WorkEnd>()
  #state: JobState = { kind: 'waiting' }
  /** Ends the timeout of a running job, or the grace of a stopping one. */
  #timer: NodeJS.Timeout | undefined
  #expectedMs = Number.POSITIVE_INFINITY
  #moves = 0
  #printed: PrintedOutput | undefined

  constructor(work: Work, options: JobOptions, given: { readonly now: () => number; readonly graceMs: number }) {
    this.work = work
    this.#options = options
    this.#now = given.now
    this.#graceMs = given.graceMs
  }

  get id(): string {
    return this.work.id
  }

  get end(): Promise<WorkEnd> {
    return this.#ended.promise
  }

  /** How long it was expected to take when a process got it. */
  get expectedMs(): number {
    return this.#expectedMs
  }

  /** False when too many processes left before they began it. */
  get mayMove(): boolean {
    return this.#moves < MAX_MOVES
  }

  get isCancelled(): boolean {
    return this.#state.kind === 'unwanted' || (this.#state.kind === 'stopping' && this.#state.why === 'cancel')
  }

  get hasPrinted(): boolean {
    return this.#printed !== undefined
  }

  elapsedMs(): number {
    return 'begunAt' in this.#state ? performance.now() - this.#state.begunAt : 0
  }

  queue(process: JobProcess, expectedMs: number): void {
    this.#enter({ kind: 'queued', process })
    this.#expectedMs = expectedMs
  }

  begin(): void {
    const before = this.#state
    assert('process' in before, `a job that is ${before.kind} has no process to begin in`)
    this.#enter({ kind: 'running', process: before.process, begunAt: performance.now() })
    const { timeoutMs, onStart } = this.#options
    if (timeoutMs !== undefined) this.#after(timeoutMs, () => this.#stop('timeout', TIMED_OUT, this.#graceMs))
    onStart?.()
    if (before.kind === 'unwanted') this.#stop('cancel', before.reason, before.graceMs)
  }

  cancel(reason: string, graceMs: number): void {
    const { kind } = this.#state
    if (kind === 'queued' || kind === 'unwanted') {
      const { process } = this.#state
      this.#enter({ kind: 'unwanted', process, reason, graceMs })
      process.askToStop(this.id, reason)
    } else this.#stop('cancel', reason, graceMs)
  }

  log(entries: readonly LogEntry[]): void {
    this.#options.onLog?.(entries)
  }

  /** What its process wrote past `console`: native code, and programs it started. */
  print(stream: 'stdout' | 'stderr', chunk: Uint8Array, redact: (text: string) => string): void {
    this.#printed ??= new PrintedOutput((entry) => this.log([{ at: this.#now(), ...entry }]), redact)
    this.#printed.write(stream, chunk)
  }

  /** Its process never began it, whatever the pool assumed: none of its time has passed. */
  takeBack(): void {
    clearTimeout(this.#timer)
    if ('begunAt' in this.#state) this.#moves++
    this.#enter({ kind: 'waiting' })
  }

  /** Ends it by itself, with what its worker reported or in the queue; or with what is known about the end of its process. */
  finish(end: WorkEnd, byItself: boolean): void {
    clearTimeout(this.#timer)
    this.#printed?.end()
    const final = this.#finalEnd(end, byItself)
    this.#enter({ kind: 'ended' })
    this.#ended.resolve(final)
  }

  #enter(next: JobState): void {
    transition('a job', transitions, this.#state.kind, next.kind)
    this.#state = next
  }

  #finalEnd(end: WorkEnd, byItself: boolean): WorkEnd {
    if (this.#state.kind !== 'stopping') return end
    if (this.#state.why === 'timeout') {
      const limit = `The attempt took longer than its timeout of ${(this.#options.timeoutMs ?? 0) / 1_000} s`
      const how = byItself ? '.' : ' and did not stop when asked to, so its process was killed.'
      return { kind: 'failed', category: 'timeout', message: `${limit}${how}` }
    }
    return byItself ? end : CANCELLED
  }

  /** The first reason stays. Being asked again never gives more time, only less. */
  #stop(why: 'timeout' | 'cancel', reason: string, graceMs: number): void {
    const before = this.#state
    assert('begunAt' in before, `a job that is ${before.kind} has nothing to stop`)
    const killAt = performance.now() + graceMs
    const isStopping = before.kind === 'stopping'
    if (isStopping && killAt >= before.killAt) return
    const { process, begunAt } = before
    this.#enter({ kind: 'stopping', process, begunAt, why: isStopping ? before.why : why, killAt })
    process.askToStop(this.id, reason)
    clearTimeout(this.#timer)
    this.#after(graceMs, () => process.kill())
  }

  #after(ms: number, act: () => void): void {
    this.#timer = setTimeout(
      () => (ms > MAX_TIMER_MS ? this.#after(ms - MAX_TIMER_MS, act) : act()),
      Math.min(ms, MAX_TIMER_MS),
    )
  }
}
