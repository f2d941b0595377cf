import fc from 'fast-check'
import type { Envelope } from '../../model/envelope.ts'
import { backfillLife } from './backfills.ts'
import { legalPermutation, type Moves, mayBeReminted, moves, withCopies } from './order.ts'
import { type HistoryPlan, historyPlan, type RequestPlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import { scheduleLife } from './schedules.ts'
import { sensorLife } from './sensors.ts'
import { stray } from './strays.ts'
import { watcherLife } from './watchers.ts'
import { type Actor, World } from './world.ts'

/** How many histories a property is tried on. The seed of a failure is printed; `SERVO_RUNS=5000` looks harder. */
export const effort = { numRuns: Number(process.env['SERVO_RUNS'] ?? 70) }

/** What happened, in the order in which it happened, and the world that knows what should have become of it. */
export interface History {
  readonly events: readonly Envelope[]
  readonly world: World
}

/** Histories of whole systems: runs from every source, with failures, retries, races, zombies and strangers. */
export const histories = (): fc.Arbitrary<History> =>
  historyPlan()
    .map(expand)
    .filter(({ events }) => events.length > 0)

function expand(plan: HistoryPlan): History {
  const world = new World(plan.choices, plan.skewsMs)
  for (const [index, request] of plan.runs.entries()) world.spawn(requester(world, index, request))
  for (const [index, schedule] of plan.schedules.entries()) world.spawn(scheduleLife(world, index, schedule))
  for (const [index, sensor] of plan.sensors.entries()) world.spawn(sensorLife(world, index, sensor))
  for (const [index, watcher] of plan.watchers.entries()) world.spawn(watcherLife(world, index, watcher))
  for (const [index, backfill] of plan.backfills.entries()) world.spawn(backfillLife(world, index, backfill))
  for (const [index, one] of plan.strays.entries()) world.spawn(stray(world, index, one))
  world.play(plan.steps ?? undefined)
  return readable({ events: world.events, world }, world.events)
}

/** A user, or the graph itself, asks for a run. */
function* requester(world: World, index: number, { by, run: plan }: RequestPlan): Actor {
  const request_id = `request-${index}`
  const run = {
    manual: () => new SimulatedRun(world, plan, `user:report-${index}`, { type: 'manual', user_id: 'ada', request_id }),
    rerun: () => {
      const first = world.runs[0]?.runId ?? 'run_of_old'
      return new SimulatedRun(world, plan, `rerun:${index}`, { type: 'rerun', run_id: first, request_id, mode: 'all' })
    },
    automation: () =>
      new SimulatedRun(world, plan, `auto:${index}`, { type: 'automation', asset_key: 'asset0', decision_id: request_id }),
  }[by]()
  world.runs.push(run)
  world.spawn(runLife(run))
  yield [run.request(world.writer())]
}

/** A history as it reached the fold: in another legal order, with some events more than once, or under a second id. */
export interface DeliveredHistory {
  readonly history: History
  readonly events: readonly Envelope[]
}

export const deliveries = (): fc.Arbitrary<DeliveredHistory> =>
  fc.tuple(histories(), moves, moves).map(([history, moved, copied]) => deliver(history, moved, copied))

function deliver(history: History, moved: Moves, copied: Moves): DeliveredHistory {
  const events = withCopies(
    legalPermutation(history.events, moved),
    copied,
    (event, copy) => copy % 2 === 0 && mayBeReminted(event),
  )
  return readable({ history, events }, events)
}

/** Makes fast-check print a counterexample as the list of its events. */
function readable<T extends object>(value: T, events: readonly Envelope[]): T {
  return Object.defineProperty(value, fc.toStringMethod, { value: () => printEvents(events), enumerable: false })
}

function printEvents(events: readonly Envelope[]): string {
  return events.map((event, at) => `\n  ${at} ${event.event_id} ${event.event_type} ${JSON.stringify(event.payload)}`).join('')
}
