import type { Deliveries, Delivery } from '../../../contract/delivery.ts'
import type { Happening } from '../../../contract/evaluation.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import { errorBackoffMs } from '../../../domain/sensors/backoff.ts'
import { standstillOf } from '../../../domain/sensors/evaluation/standstill.ts'
import { byAge } from '../../../domain/sensors/happenings/happenings.ts'
import { type SensorHappeningRow, sensorHappenings } from '../../../domain/sensors/happenings/sensor-happenings.table.ts'
import { sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { SensorEvaluated } from '../../../domain/sensors/sensor-evaluated.event.ts'
import { sensorState } from '../../../domain/sensors/sensor-state.table.ts'
import type { Reactor } from '../../../engine/loop/loop.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import { reactor } from '../reactor.ts'

/** Sensors that are given something at the same time. Few, so that messages from outside find a worker too. */
const MAX_AT_ONCE = 4
/** A sensor that takes longer does not keep others waiting. */
const SLOW_MS = 5 * SECOND_MS

export interface HappeningsOptions {
  readonly clock: AlarmClock
  readonly rows: () => Rows
  readonly deliver: Deliveries['deliver']
  readonly submit: (events: readonly NewEvent[]) => Promise<unknown>
  /** False before the project is loaded, and where there is no automation. Call `nudge` when it becomes true. */
  readonly mayDeliver: () => boolean
  readonly onTrouble: (error: unknown) => void
}

/**
 * What waits for one sensor.
 * - `ready`: looked at whenever something changes.
 * - `queued`: waits until fewer sensors are given something.
 * - `delivering`: until there is an answer.
 * - `resting`: an alarm ends it; after an error, or when an answer could not be made durable.
 * - `halted`: the sensor is not to be evaluated, until it or the automation changes.
 */
interface Lane {
  readonly sensorId: string
  state: 'ready' | 'queued' | 'delivering' | 'resting' | 'halted'
  /** The newest first, once it is sorted. */
  readonly waiting: Readonly<SensorHappeningRow>[]
  readonly known: Set<string>
  isSorted: boolean
  /** True if the sensor or the automation changed while something was delivered, so that a standstill may be over. */
  hasChanged: boolean
  /** Deliveries in a row that ended without an answer. */
  troubles: number
  /** By the clock that never jumps. */
  troubledUntil: number
  cancelAlarm: (() => void) | undefined
}

/**
 * Delivers what happened to the sensors that watch it: of each sensor one at a time, the oldest first. It remembers nothing but
 * what the rows say, so that a new process goes on where the one before ended.
 */
export class Happenings {
  readonly #options: HappeningsOptions
  readonly #lanes = new Map<string, Lane>()
  readonly #queue: Lane[] = []
  #delivering = 0
  #isClosed = false

  constructor(options: HappeningsOptions) {
    this.#options = options
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(sensorHappenings, (row) => this.#add(row)),
      reactor(sensorState, ({ sensor_id }) => this.#changed(sensor_id)),
      reactor(sensorDefinitions, ({ sensor_id }) => this.#changed(sensor_id)),
      reactor(automationState, () => this.nudge()),
    ]
  }

  /** Looks at all sensors again. */
  nudge(): void {
    for (const sensorId of [...this.#lanes.keys()]) this.#changed(sensorId)
  }

  /** Delivers nothing any more. What is being delivered is delivered again by whoever leads next, unless its evaluation is on record. */
  close(): void {
    this.#isClosed = true
    for (const lane of this.#lanes.values()) lane.cancelAlarm?.()
  }

  #add(row: Readonly<SensorHappeningRow>): void {
    if (row.dead) return
    const { sensor_id: sensorId, message_id } = row
    const lane = this.#lanes.get(sensorId) ?? newLane(sensorId)
    this.#lanes.set(sensorId, lane)
    if (!lane.known.has(message_id)) {
      lane.known.add(message_id)
      lane.waiting.push(row)
      lane.isSorted = false
    }
    if (lane.state === 'ready') this.#look(lane)
  }

  #changed(sensorId: string): void {
    const lane = this.#lanes.get(sensorId)
    if (lane === undefined) return
    lane.hasChanged = true
    if (lane.state !== 'delivering' && lane.state !== 'queued') this.#look(lane)
  }

  /** Gives the sensor what has waited longest, or decides when to look again. */
  #look(lane: Lane): void {
    lane.cancelAlarm?.()
    lane.cancelAlarm = undefined
    lane.state = 'ready'
    if (this.#isClosed || !this.#options.mayDeliver()) return
    const next = this.#oldest(lane)
    if (next === undefined) {
      this.#lanes.delete(lane.sensorId)
      return
    }
    const { clock } = this.#options
    const restMs = this.#restMs(lane)
    if (restMs === undefined) lane.state = 'halted'
    else if (restMs > 0) {
      lane.state = 'resting'
      lane.cancelAlarm = clock.after(restMs, () => this.#look(lane))
    } else if (this.#delivering >= MAX_AT_ONCE) {
      lane.state = 'queued'
      this.#queue.push(lane)
    } else {
      lane.state = 'delivering'
      lane.hasChanged = false
      const leave = this.#takeTurn()
      void this.#deliver(lane, next)
        .catch((error: unknown) => this.#troubled(lane, error))
        .finally(() => {
          leave()
          if (lane.state !== 'halted' || lane.hasChanged) this.#look(lane)
        })
    }
  }

  /** The oldest happening that still waits. Rows leave the table when they are accepted, dropped or forgotten. */
  #oldest(lane: Lane): Readonly<SensorHappeningRow> | undefined {
    if (!lane.isSorted) lane.waiting.sort((a, b) => byAge(b, a))
    lane.isSorted = true
    const rows = this.#options.rows().hot(sensorHappenings)
    for (let last = lane.waiting.at(-1); last !== undefined; last = lane.waiting.at(-1)) {
      const row = rows.get(last.sensor_id, last.message_id)
      if (row?.dead === false) return row
      this.#drop(lane, last.message_id)
    }
    return undefined
  }

  #drop(lane: Lane, messageId: string): void {
    const at = lane.waiting.findLastIndex(({ message_id }) => message_id === messageId)
    if (at >= 0) lane.waiting.splice(at, 1)
    lane.known.delete(messageId)
  }

  /** How long the sensor rests, undefined if it is not to be evaluated at all. */
  #restMs({ sensorId, troubledUntil }: Lane): number | undefined {
    const { clock } = this.#options
    const rows = this.#options.rows()
    const definition = rows.hot(sensorDefinitions).get(sensorId)
    const state = rows.hot(sensorState).get(sensorId)
    const everything = rows.hot(automationState).get(EVERYTHING)
    if (definition === undefined || standstillOf({ definition, state, everything }) !== undefined) return undefined
    // An error in the future was recorded by a clock that was ahead.
    const isPast = (state?.last_error_at ?? Number.POSITIVE_INFINITY) <= clock.now()
    const backoffMs = isPast ? (state?.backoff_until ?? 0) - clock.now() : 0
    return Math.max(0, backoffMs, troubledUntil - clock.monotonic())
  }

  async #deliver(lane: Lane, row: Readonly<SensorHappeningRow>): Promise<void> {
    const answer = await this.#options.deliver(deliveryOf(row))
    if (this.#isClosed) return
    lane.troubles = 0
    if (answer.kind === 'standstill') lane.state = 'halted'
    if (answer.kind === 'accepted' || answer.kind === 'dead') this.#drop(lane, row.message_id)
    // It was accepted before it began to wait: something was reported again after so long that nobody remembers the first report.
    if (answer.kind === 'accepted' && answer.repeated && this.#stillWaits(row)) await this.#options.submit([repeated(row)])
  }

  #stillWaits({ sensor_id, message_id }: Readonly<SensorHappeningRow>): boolean {
    return this.#options.rows().hot(sensorHappenings).get(sensor_id, message_id) !== undefined
  }

  #troubled(lane: Lane, error: unknown): void {
    lane.troubles += 1
    lane.troubledUntil = this.#options.clock.monotonic() + errorBackoffMs(lane.troubles)
    if (lane.troubles === 1 && !this.#isClosed) this.#options.onTrouble(error)
  }

  /** Counts a sensor among those that are given something, until it is done or turns out to be slow. */
  #takeTurn(): () => void {
    this.#delivering += 1
    let isCounted = true
    const leave = (): void => {
      cancel()
      if (!isCounted) return
      isCounted = false
      this.#delivering -= 1
      // Those that have waited for their turn go first.
      const next = this.#queue.shift()
      if (next !== undefined) this.#look(next)
    }
    const cancel = this.#options.clock.after(SLOW_MS, leave)
    return leave
  }
}

const newLane = (sensorId: string): Lane => ({
  sensorId,
  state: 'ready',
  waiting: [],
  known: new Set(),
  isSorted: true,
  hasChanged: false,
  troubles: 0,
  troubledUntil: 0,
  cancelAlarm: undefined,
})

function deliveryOf(row: Readonly<SensorHappeningRow>): Delivery {
  const happening: Happening = { ...row.happening, at: toIso(row.happened_at) }
  const message = { id: row.message_id, data: happening, attributes: {}, published_at: happening.at }
  return {
    sensor_id: row.sensor_id,
    message,
    body_hash: null,
    body_size: null,
    ...(row.chain !== null && { chain: row.chain }),
  }
}

/** On record as an evaluation that was skipped, because another counts. That ends the wait. */
const repeated = ({ sensor_id, message_id, row_version }: Readonly<SensorHappeningRow>): NewEvent =>
  newEvent(SensorEvaluated, {
    sensor_id,
    trigger_source: { source: 'push', message_id, try: 1, max_tries: 1 },
    begun: row_version,
    status: 'no_new_data',
  })
