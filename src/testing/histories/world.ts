import { itemAt } from '../../lib/collections/item-at.ts'
import { DAY_MS, toMs } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { EventDefinition } from '../../model/event.ts'
import type { ExpectedBackfill } from './backfills.ts'
import type { SimulatedRun } from './runs.ts'
import type { ExpectedSensor } from './sensors.ts'
import { type ExpectedWatcher, tellWatchers } from './watchers.ts'
import { SimulatedWriter } from './writers.ts'

/** A participant that does one thing after another: each step is a segment to append, or nothing while it waits. */
export type Actor = Generator<Envelope[] | undefined, void>

const START_MS = toMs('2025-01-15T10:00:00.000Z')
const STEP_MS = 700
/** Rounds in which all actors waited; longer than any actor waits for a reason of its own. */
const PATIENCE = 40

/**
 * A small system that behaves plausibly: actors append segments in turns. Everything that looks like chance comes from
 * `choices`, so that a plan always expands to the same history, and an empty list means: one actor after the other.
 */
export class World {
  readonly events: Envelope[] = []
  readonly runs: SimulatedRun[] = []
  readonly sensors: ExpectedSensor[] = []
  readonly watchers: ExpectedWatcher[] = []
  readonly backfills: ExpectedBackfill[] = []
  /** Run keys whose requests must not have made a run. */
  readonly refused = new Set<string>()
  readonly #choices: readonly number[]
  readonly #writers: readonly SimulatedWriter[]
  readonly #actors: Actor[] = []
  readonly #ended = new Set<SimulatedRun>()
  #rolls = 0
  #now = START_MS

  constructor(choices: readonly number[], skewsMs: readonly number[]) {
    this.#choices = choices
    // No two writers share a millisecond: an event that names the moment of a change names one change.
    const skews = [0, ...skewsMs].map((skew, index) => Math.round(skew / 10) * 10 + index)
    // One of them knows of a clock that was a day ahead: what it writes stands later than its times say.
    this.#writers = skews.map((skew, index) => new SimulatedWriter(index, skew, () => this.#now, index === 1 ? DAY_MS : 0))
  }

  get now(): number {
    return this.#now
  }

  /** A number from 0 to `sides` - 1. */
  roll(sides: number): number {
    if (this.#choices.length === 0 || sides <= 1) return 0
    const at = this.#rolls++
    const lap = Math.floor(at / this.#choices.length)
    return (itemAt(this.#choices, at % this.#choices.length) + lap * 7) % sides
  }

  writer(): SimulatedWriter {
    return itemAt(this.#writers, this.roll(this.#writers.length))
  }

  /** A segment of one event, by any of the writers. */
  write(definition: EventDefinition, payload: Record<string, unknown>): Envelope[] {
    return [this.writer().write(definition, payload)]
  }

  spawn(actor: Actor): void {
    this.#actors.push(actor)
  }

  /** Tells watchers which runs have ended in the last step. */
  #tellEnds(): void {
    for (const run of this.runs) {
      if (this.#ended.has(run) || !run.isOver) continue
      this.#ended.add(run)
      const { runId, state, assets, asker } = run
      tellWatchers(this.watchers, { id: `run:${runId}:${state}`, type: 'run', what: state, assets, asker })
    }
  }

  /** Lets the actors act until none has anything left to do, all wait for something that will not come, or it is late. */
  play(steps = Number.POSITIVE_INFINITY): void {
    let idleRounds = 0
    const end = this.#now + steps * STEP_MS
    while (this.#actors.length > 0 && idleRounds < PATIENCE && this.#now < end) {
      const first = this.roll(this.#actors.length)
      let acted = false
      for (let offset = 0; offset < this.#actors.length && !acted; offset++) {
        const actor = itemAt(this.#actors, (first + offset) % this.#actors.length)
        const step = actor.next()
        if (step.done) this.#actors.splice(this.#actors.indexOf(actor), 1)
        else if (step.value !== undefined) this.events.push(...step.value)
        acted = Boolean(step.done) || step.value !== undefined
        if (step.value) this.#now += STEP_MS
        this.#tellEnds()
      }
      idleRounds = acted ? 0 : idleRounds + 1
    }
  }
}

export function* pause(steps: number): Actor {
  for (let step = 0; step < steps; step++) yield undefined
}

/** Keys that an evaluation or the end of an attempt reports. All are of one set, so that they contradict each other. */
export function keysFound(world: World): object {
  const added = { partition_keys_added: [{ set_name: 'customers', keys: ['acme', 'initech'] }] }
  const removed = { partition_keys_removed: [{ set_name: 'customers', keys: ['acme'] }] }
  return itemAt<object>([{}, added, removed, { ...added, ...removed }], world.roll(4))
}
