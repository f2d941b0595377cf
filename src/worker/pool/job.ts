import type { AttemptResult, DispatchEnvelope } from '../../contract/dispatch.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import { cancelled, failed, TIMED_OUT } from '../attempt-results.ts'
import { PrintedOutput } from '../printed-text.ts'
import type { LocalWorker } from './local-worker.ts'

export interface JobOptions {
  /** Longer than this and it is asked to stop, then killed. */
  readonly timeoutMs?: number
  /** It begins: it has a process, and nothing runs there before it. */
  readonly onStart?: () => void
  readonly onLog?: (entries: readonly LogEntry[]) => void
}

/** The longest a timer of Node can wait: 24.8 days. A longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** An attempt on its way through the pool. */
export class Job {
  readonly envelope: DispatchEnvelope
  readonly result: Promise<AttemptResult>
  worker: LocalWorker | undefined
  /** How often it was given to a process that left before it began. */
  moves = 0
  /** How long it will take if it is like others of its asset. */
  expectedMs = Number.POSITIVE_INFINITY
  readonly #options: JobOptions
  readonly #now: () => number
  readonly #graceMs: number
  #settle!: (result: AttemptResult) => void
  #printed: PrintedOutput | undefined
  #timer: NodeJS.Timeout | undefined
  #stopping: 'timeout' | 'cancel' | undefined
  #begunAt: number | undefined
  /** It shall stop, but has not begun yet. */
  #unwanted: { readonly reason: string; readonly graceMs: number } | undefined
  #killAt = Number.POSITIVE_INFINITY

  constructor(
    envelope: DispatchEnvelope,
    options: JobOptions,
    given: { readonly now: () => number; readonly graceMs: number },
  ) {
    this.envelope = envelope
    this.#options = options
    this.#now = given.now
    this.#graceMs = given.graceMs
    this.result = new Promise((resolve) => {
      this.#settle = resolve
    })
  }

  get id(): string {
    return this.envelope.attempt_id
  }

  giveTo(worker: LocalWorker): void {
    this.worker = worker
    worker.give(this)
  }

  begin(): void {
    this.#begunAt = performance.now()
    const { timeoutMs, onStart } = this.#options
    onStart?.()
    if (timeoutMs !== undefined) this.#after(timeoutMs, () => this.#stop('timeout', TIMED_OUT, this.#graceMs))
    if (this.#unwanted !== undefined) this.#stop('cancel', this.#unwanted.reason, this.#unwanted.graceMs)
  }

  /** A queued job must not kill the job ahead of it, so its grace period starts when it begins. */
  cancel(reason: string, graceMs: number): void {
    if (this.#begunAt !== undefined) this.#stop('cancel', reason, graceMs)
    else {
      this.#unwanted = { reason, graceMs }
      this.worker?.askToStop(this.id, reason)
    }
  }

  get isCancelled(): boolean {
    return this.#unwanted !== undefined || this.#stopping === 'cancel'
  }

  get hasPrinted(): boolean {
    return this.#printed !== undefined
  }

  elapsedMs(): number {
    return this.#begunAt === undefined ? 0 : performance.now() - this.#begunAt
  }

  log(entries: readonly LogEntry[]): void {
    this.#options.onLog?.(entries)
  }

  /** What its process wrote past `console`: native code, and programs it started. */
  print(stream: 'stdout' | 'stderr', chunk: Uint8Array): void {
    this.#printed ??= new PrintedOutput((entry) => this.log([{ at: this.#now(), ...entry }]))
    this.#printed.write(stream, chunk)
  }

  /** It goes back to where attempts wait: its process did not come to begin it, so none of its time has passed. */
  takeBack(): void {
    clearTimeout(this.#timer)
    this.worker = undefined
    this.#begunAt = undefined
    this.#killAt = Number.POSITIVE_INFINITY
    if (this.#stopping === 'timeout') this.#stopping = undefined
  }

  /** Ends it with what its worker reported, or with what is known about the end of its process. */
  finish(result: AttemptResult, reported: boolean): void {
    clearTimeout(this.#timer)
    this.#printed?.end()
    this.#settle(this.#verdict(result, reported))
  }

  #verdict(result: AttemptResult, reported: boolean): AttemptResult {
    if (this.#stopping === 'timeout') {
      const limit = `The attempt took longer than its timeout of ${(this.#options.timeoutMs ?? 0) / 1_000} s`
      return failed('timeout', `${limit}${reported ? '.' : ' and did not stop when asked to, so its process was killed.'}`)
    }
    return this.#stopping === 'cancel' && !reported ? cancelled() : result
  }

  /** The first reason stays. Being asked again never gives more time, only less. */
  #stop(why: 'timeout' | 'cancel', reason: string, graceMs: number): void {
    this.#stopping ??= why
    const killAt = performance.now() + graceMs
    if (killAt >= this.#killAt) return
    this.#killAt = killAt
    this.worker?.askToStop(this.id, reason)
    clearTimeout(this.#timer)
    this.#after(graceMs, () => this.worker?.kill())
  }

  #after(ms: number, act: () => void): void {
    this.#timer = setTimeout(
      () => (ms > MAX_TIMER_MS ? this.#after(ms - MAX_TIMER_MS, act) : act()),
      Math.min(ms, MAX_TIMER_MS),
    )
  }
}
