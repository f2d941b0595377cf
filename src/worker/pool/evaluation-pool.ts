import { z } from 'zod'
import {
  type EvaluationReport,
  type EvaluationRequest,
  type Evaluator,
  evaluationReport,
  type Outage,
} from '../../contract/evaluation.ts'
import type { ProjectManifest, ProjectProblem } from '../../contract/project-manifest.ts'
import { ServoError } from '../../lib/error.ts'
import { whyNotLoaded } from './generation.ts'
import { Lanes } from './lanes.ts'
import { ProcessPool, type WorkerCommand } from './process-pool.ts'
import type { WorkEnd } from './work.ts'

export interface EvaluationPoolOptions {
  readonly now: () => number
  readonly onTrouble?: (error: ServoError) => void
  /** Called with the end of what code printed that did not fail; `by` is such as `sensor files`. */
  readonly onPrinted?: ((by: string, text: string) => void) | undefined
  /** How long code that is asked to stop may take before its process is killed. */
  readonly graceMs?: number
  /** How long an evaluation may wait for a process before it is given up. */
  readonly maxWaitMs?: number
}

/** Enough for a poll that takes long while a user asks for another. */
const AT_A_TIME = 2

/** A process holds some 60 MB. Sixteen sensors may hang before another has to wait for the timeout of one of them. */
const MAX_PROCESSES = 32

/** The server closes within a second, and a sender waits for the answer. */
const GRACE_MS = 500

/** Longer than most evaluations that have to end first, shorter than most senders wait for an answer. */
const MAX_WAIT_MS = 60_000

/** Code is loaded again when it is saved. What else may be in its way, such as a database that it asks when it is loaded, is tried so often. */
const TRY_AGAIN_MS = 10_000

/** The end of what a process that crashed wrote to standard error. */
const MAX_STDERR = 2_000

type Processes = ProcessPool<EvaluationReport>

/**
 * Evaluates sensors, and conditions of schedules, in processes of their own: they do not wait behind attempts, and two
 * evaluations at a time of each leave room for all others when one hangs.
 */
export class EvaluationPool implements Evaluator {
  readonly #options: EvaluationPoolOptions
  readonly #lanes = new Lanes(AT_A_TIME)
  /** Resolves when the project was loaded for the first time, or could not be. */
  readonly #known = Promise.withResolvers<void>()
  /** Resolves when the newest code is loaded: evaluations wait for it, because a new sensor is in no other. */
  #loading: Promise<unknown> = this.#known.promise
  /** None while the project has no code to evaluate. */
  #processes: Processes | undefined
  /** Why nothing can be evaluated, and until when that is not tried again. */
  #outage: { readonly reason: string; readonly until: number } | undefined
  /** The sensors and schedules of the code, and those that were in it before. */
  #names: ReadonlySet<string> | undefined
  readonly #removed = new Set<string>()
  /** Processes of code that is gone, until they have ended. */
  #leaving: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(options: EvaluationPoolOptions) {
    this.#options = options
  }

  /** The project was loaded. Evaluations that run finish with the code that they began with. */
  loaded({ sensors, schedules }: Pick<ProjectManifest, 'sensors' | 'schedules'>, command: WorkerCommand): void {
    if (this.#isClosed) return
    this.#outage = undefined
    const evaluated =
      sensors.filter(({ has_code }) => has_code).length + schedules.filter(({ has_condition }) => has_condition).length
    const size = Math.min(Math.max(AT_A_TIME * evaluated, AT_A_TIME), MAX_PROCESSES)
    if (evaluated === 0) this.#leave()
    else if (this.#processes === undefined) this.#processes = this.#start(command, size)
    else {
      this.#processes.resize(size)
      this.#loading = this.#processes.replace(command)
    }
    this.#know(new Set([...sensors.map((each) => sensorName(each.name)), ...schedules.map((each) => scheduleName(each.name))]))
    this.#known.resolve()
  }

  #know(names: ReadonlySet<string>): void {
    for (const name of this.#names ?? []) this.#removed.add(name)
    for (const name of names) this.#removed.delete(name)
    this.#names = names
  }

  /** The project could not be loaded. If it could be before, that code stays for as long as a process lives that has loaded it. */
  notLoaded(problems: readonly ProjectProblem[]): void {
    const reason = whyNotLoaded(problems)
    if (this.#names === undefined) this.#outage = { reason, until: Number.POSITIVE_INFINITY }
    else if (this.#outage !== undefined) this.#outage = { ...this.#outage, reason }
    this.#known.resolve()
  }

  outage(): Outage | undefined {
    return this.#outage && { reason: this.#outage.reason, isResting: performance.now() < this.#outage.until }
  }

  async evaluate(request: EvaluationRequest): Promise<EvaluationReport> {
    const name = request.of === 'condition' ? scheduleName(request.schedule) : sensorName(request.sensor)
    return this.#lanes.run(name, async () => {
      await this.#loading
      if (this.#isClosed) return { outcome: 'cancelled' }
      if (this.#outage !== undefined && performance.now() < this.#outage.until)
        return { outcome: 'unavailable', reason: this.#outage.reason }
      // That is on record in a moment. Until then the code, which knows nothing of it, is not asked.
      if (this.#removed.has(name)) return { outcome: 'unavailable', reason: `The ${name} was removed from the project code.` }
      if (this.#processes === undefined) return { outcome: 'error', error: 'The project has no code to evaluate.' }
      const report = this.#withoutPrinted(name, await this.#evaluateIn(this.#processes, name, request))
      this.#note(report)
      return this.#isClosed && report.outcome === 'error' ? { outcome: 'cancelled' } : answered(request, report)
    })
  }

  async #evaluateIn(processes: Processes, name: string, request: EvaluationRequest): Promise<EvaluationReport> {
    const { evaluation_id: id, timeout_ms: timeoutMs } = request
    const { maxWaitMs = MAX_WAIT_MS } = this.#options
    let isGivenUp = false
    const waiting = setTimeout(() => {
      isGivenUp = processes.cancel(id)
    }, maxWaitMs)
    const onStart = (): void => clearTimeout(waiting)
    const report = await processes.do({ id, name, message: { type: 'evaluate', request } }, { timeoutMs, onStart })
    clearTimeout(waiting)
    if (!isGivenUp || this.#isClosed) return report
    return { outcome: 'unavailable', reason: `No worker process was free within ${maxWaitMs / 1_000} s.` }
  }

  /** Remembers whether anything can be evaluated. */
  #note(report: EvaluationReport): void {
    if (report.outcome === 'cancelled' || this.#isClosed) return
    const before = this.#outage
    if (report.outcome !== 'unavailable') {
      this.#outage = undefined
      return
    }
    this.#outage = { reason: report.reason, until: performance.now() + TRY_AGAIN_MS }
    if (before === undefined) this.#options.onTrouble?.(nothingEvaluated(report.reason))
  }

  /** Output is told here and goes no further: what is recorded is what the code returned. */
  #withoutPrinted(name: string, report: EvaluationReport): EvaluationReport {
    if (!('printed' in report)) return report
    const { printed, ...rest } = report
    if (printed !== undefined) this.#options.onPrinted?.(name, printed)
    return rest
  }

  /** Ends all evaluations and their processes. None is left when it resolves. */
  async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    this.#isClosed = true
    this.#known.resolve()
    await Promise.all([this.#processes?.close(options), this.#leaving])
  }

  #start(command: WorkerCommand, size: number): Processes {
    const { now, onTrouble, graceMs = GRACE_MS } = this.#options
    const options = { command, size, warm: 1, sharing: false, graceMs, now, ...(onTrouble !== undefined && { onTrouble }) }
    return new ProcessPool(options, reportOf)
  }

  #leave(): void {
    const left = this.#processes
    this.#processes = undefined
    if (left !== undefined) this.#leaving = Promise.all([this.#leaving, left.close()]).then(() => undefined)
  }
}

const sensorName = (name: string): string => `sensor ${name}`
const scheduleName = (name: string): string => `schedule ${name}`

const nothingEvaluated = (reason: string): ServoError =>
  new ServoError('unavailable', 'nothing_evaluated', `sensors and schedule conditions are waiting: ${reason}`, {
    hint: 'Messages are refused until it is fixed; that does not count as a try. Fix it and save.',
  })

/** Checks what a process reported: user code can write there too. */
function reportOf(end: WorkEnd): EvaluationReport {
  if (end.kind === 'cancelled') return { outcome: 'cancelled' }
  if (end.kind === 'reported') {
    const { data, error } = evaluationReport.safeParse(end.result)
    return data ?? { outcome: 'error', error: `What the code reported is not valid: ${z.prettifyError(error)}` }
  }
  if (end.kind === 'not_begun') return { outcome: 'unavailable', reason: end.message }
  if (end.category === 'timeout') return { outcome: 'timed_out' }
  const words = end.stack?.slice(-MAX_STDERR)
  return { outcome: 'error', error: words === undefined ? end.message : `${end.message}\n${words}` }
}

/** Only code that writes to the pipe itself answers something else. */
function answered(request: EvaluationRequest, report: EvaluationReport): EvaluationReport {
  const other = request.of === 'condition' ? 'requests' : 'condition'
  if (report.outcome !== other) return report
  return { outcome: 'error', error: `What the code reported is not valid: ${other} are not what was asked for.` }
}
