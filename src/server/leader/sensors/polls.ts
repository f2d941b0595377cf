import type { UnrecordedPolls } from '../../../contract/delivery.ts'
import { errorBackoffMs } from '../../../domain/sensors/backoff.ts'
import { EmptyPollNotes } from '../../../domain/sensors/evaluation/empty-polls.ts'
import { isEmptyPoll } from '../../../domain/sensors/evaluation/evaluation-events.ts'
import { nextPollAt } from '../../../domain/sensors/evaluation/poll-due.ts'
import { sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../../lib/time.ts'
import type { NewEvent } from '../../../model/event.ts'
import { ClockSteps } from '../../../ports/clock-steps.ts'
import { type Evaluations, type EvaluationsOptions, PROJECT_NOT_LOADED } from './evaluations.ts'

/** Polls that the clock brings at a time; the others wait. A poll waits for others most of its time, and messages need workers too. */
const MAX_SIDE_BY_SIDE = 16
/** A clock that was set is noticed within this time. */
const MAX_SLEEP_MS = MINUTE_MS
/** A poll that takes longer does not keep others waiting: whatever it hangs on is no reason for them. */
const SLOW_MS = 5 * SECOND_MS

export interface PollsOptions extends Pick<EvaluationsOptions, 'clock' | 'known' | 'submit' | 'mintId'> {
  readonly evaluations: Evaluations
  /** Resolves when all that is in memory now is durable. */
  readonly durable: () => Promise<void>
  /** Throws if another process leads. */
  readonly checkLeads: () => Promise<void>
  readonly onTrouble: (error: unknown) => void
}

/** What became of a poll; without an id if it found nothing and is recorded together with others. */
export interface Polled {
  readonly eval_id: string | null
  readonly status: string
}

/**
 * Polls sensors when they are due: one poll of a sensor at a time. Everything that it remembers it can work out from the rows again; what it
 * loses in a crash is the count of polls that found nothing.
 */
export class Polls {
  readonly #options: PollsOptions
  /** When each sensor is polled next. */
  readonly #due = new Map<string, number>()
  readonly #polledAt = new Map<string, number>()
  readonly #going = new Map<string, Promise<unknown>>()
  readonly #notes = new EmptyPollNotes()
  /** How often in a row a poll could not be made, because no code of the project can be evaluated. */
  readonly #refused = new Map<string, number>()
  #startedAt: number | undefined
  readonly #steps: ClockSteps
  /** Polls under way that are not slow. */
  #brisk = 0
  #cancel: (() => void) | undefined
  #willLook = false

  constructor(options: PollsOptions) {
    this.#options = options
    this.#steps = new ClockSteps(options.clock)
  }

  start(): void {
    if (this.#startedAt !== undefined) return
    const { clock } = this.#options
    this.#startedAt = clock.now()
    this.changedAll()
  }

  /** The code of the project can be evaluated again, as far as one knows: what could not be polled is not put off any longer. */
  mended(): void {
    if (this.#refused.size === 0) return
    this.#refused.clear()
    this.changedAll()
  }

  /** Nothing is polled any more. */
  stop(): void {
    this.#startedAt = undefined
    this.#cancel?.()
    this.#due.clear()
  }

  /** When this process polled the sensor last. */
  polledAt(sensorId: string): number | undefined {
    return this.#polledAt.get(sensorId)
  }

  /** The polls of a sensor that found nothing and are not on record yet. */
  unrecorded(sensorId: string): UnrecordedPolls | undefined {
    return this.#notes.of(sensorId)
  }

  /** Takes the polls that found nothing and are not on record yet, of one sensor or of all. */
  takeNotes(sensorId?: string): NewEvent[] {
    return this.#notes.take(this.#options.mintId(), sensorId)
  }

  /** Something on record of this sensor changed. */
  changed(sensorId: string): void {
    this.#plan(sensorId)
    this.#lookSoon()
  }

  /** Something changed that counts for every sensor. */
  changedAll(): void {
    this.#planAll()
    this.#lookSoon()
  }

  /** Polls a sensor as soon as the poll that is under way has ended. */
  async poll(sensorId: string, requestedBy?: string): Promise<Polled> {
    for (let going = this.#going.get(sensorId); going !== undefined; going = this.#going.get(sensorId)) await going
    const polling = this.#poll(sensorId, requestedBy)
    const ended = polling.then(
      () => this.#refused.delete(sensorId),
      (error: unknown) => {
        const isRefused = error instanceof ServoError && error.code === PROJECT_NOT_LOADED
        if (isRefused) this.#refused.set(sensorId, (this.#refused.get(sensorId) ?? 0) + 1)
      },
    )
    this.#going.set(
      sensorId,
      ended.then(() => {
        this.#going.delete(sensorId)
        this.changed(sensorId)
      }),
    )
    return await polling
  }

  async #poll(sensorId: string, requestedBy?: string): Promise<Polled> {
    const { clock, evaluations, mintId, durable, checkLeads } = this.#options
    const began = clock.now()
    this.#polledAt.set(sensorId, began)
    // A poll begins from what is durable: a cursor that was never written must not be the beginning of anything.
    await durable()
    await checkLeads()
    const { definition, state } = evaluations.watched(sensorId)
    const [state_version, cursor] = [state?.state_version ?? 0, state?.cursor ?? null]
    const { sensor_name: sensor, timeout_ms } = definition
    const begun = mintId()
    const { result, duration_ms } = await evaluations.evaluate({
      ...{ evaluation_id: begun, timeout_ms },
      ...{ of: 'poll', sensor, cursor },
    })
    const hasErrors = (evaluations.watched(sensorId).state?.consecutive_errors ?? 0) > 0
    if (isEmptyPoll(result, cursor) && !hasErrors && requestedBy === undefined) {
      this.#notes.note(sensorId, state_version, began)
      return { eval_id: null, status: 'no_new_data' }
    }
    const { evaluation } = await evaluations.record({
      ...{ definition, begun, result, duration_ms, requested_by: requestedBy },
      source: { source: 'poll', state_version, cursor },
      before: this.takeNotes(sensorId),
    })
    return { eval_id: evaluation.eval_id, status: evaluation.status }
  }

  #planAll(): void {
    this.#due.clear()
    for (const { sensor_id } of this.#definitions()) this.#plan(sensor_id)
  }

  #definitions() {
    try {
      return this.#options.known.rows().hot(sensorDefinitions).all()
    } catch (error) {
      return unknownFor(error)
    }
  }

  #plan(sensorId: string): void {
    const at = this.#next(sensorId)
    if (at === undefined) this.#due.delete(sensorId)
    else this.#due.set(sensorId, at)
  }

  #next(sensorId: string): number | undefined {
    if (this.#startedAt === undefined) return undefined
    try {
      const watched = this.#options.evaluations.watched(sensorId)
      const now = this.#options.clock.now()
      const [startedAt, polledAt] = [this.#startedAt, this.#polledAt.get(sensorId)]
      const at = nextPollAt({ ...watched, startedAt, polledAt, now })
      const refused = this.#refused.get(sensorId) ?? 0
      // A poll that lies in the future was made by a clock that was ahead.
      if (at === undefined || refused === 0 || polledAt === undefined || polledAt > now) return at
      return Math.max(at, polledAt + errorBackoffMs(refused))
    } catch (error) {
      unknownFor(error)
      return undefined
    }
  }

  /** Rows change many at a time. */
  #lookSoon(): void {
    if (this.#willLook) return
    this.#willLook = true
    queueMicrotask(() => {
      this.#willLook = false
      this.#look()
    })
  }

  /** Begins what is due, and sets the alarm for what comes next. */
  #look(): void {
    this.#cancel?.()
    if (this.#startedAt === undefined) return
    const { clock } = this.#options
    if (this.#steps.wasSet()) this.#planAll()
    const now = clock.now()
    const byTime = [...this.#due].filter(([, at]) => at <= now).sort(([, a], [, b]) => a - b)
    for (const [sensorId] of byTime) {
      if (this.#brisk >= MAX_SIDE_BY_SIDE) break
      if (!this.#going.has(sensorId)) this.#begin(sensorId, now)
    }
    if ((this.#notes.dueAt ?? Number.POSITIVE_INFINITY) <= now) this.#recordNotes()
    // What is due and has to wait is looked at again when a poll ends or turns out to be slow.
    let next = this.#notes.dueAt ?? Number.POSITIVE_INFINITY
    for (const [sensorId, at] of this.#due) if (at > now && !this.#going.has(sensorId)) next = Math.min(next, at)
    if (next < Number.POSITIVE_INFINITY)
      this.#cancel = clock.after(Math.max(1, Math.min(next - now, MAX_SLEEP_MS)), () => this.#look())
  }

  /** Polls, if that is still due by what is in memory now. */
  #begin(sensorId: string, now: number): void {
    this.#plan(sensorId)
    if ((this.#due.get(sensorId) ?? Number.POSITIVE_INFINITY) > now) return
    this.#brisk += 1
    let isBrisk = true
    const leave = (): void => {
      if (!isBrisk) return
      isBrisk = false
      this.#brisk -= 1
      this.#lookSoon()
    }
    const cancel = this.#options.clock.after(SLOW_MS, leave)
    const polled = this.poll(sensorId).finally(() => {
      cancel()
      leave()
    })
    polled.catch((error: unknown) => {
      // The store cannot be written, or this process closes or was deposed: that is told elsewhere, and the poll comes again.
      if (!isServoError(error, 'unavailable') && !isServoError(error, 'conflict')) this.#options.onTrouble(error)
    })
  }

  #recordNotes(): void {
    this.#options.submit(this.takeNotes()).catch((error: unknown) => {
      if (!isServoError(error, 'unavailable') && !isServoError(error, 'conflict')) this.#options.onTrouble(error)
    })
  }
}

/** While the state is opened again no rows are known; afterwards every row is shown. A sensor that is gone is no more due. */
function unknownFor(error: unknown): [] {
  if (isServoError(error, 'unavailable') || isServoError(error, 'not_found')) return []
  throw error
}
