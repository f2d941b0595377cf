import type fc from 'fast-check'
import type { Envelope } from '../model/envelope.ts'
import { backfillLife } from './history-backfills.ts'
import { type HistoryPlan, historyPlan, type RequestPlan, type Shape } from './history-plan.ts'
import { runLife, SimulatedRun } from './history-runs.ts'
import { scheduleLife } from './history-schedules.ts'
import { sensorLife } from './history-sensors.ts'
import { stray } from './history-strays.ts'
import { type Actor, World } from './history-world.ts'

/** What happened, in the order in which it happened, and what should have become of it. */
export interface History {
  readonly plan: HistoryPlan
  readonly events: readonly Envelope[]
  readonly world: World
}

/** Histories of whole systems: runs from every source, with failures, retries, races, zombies and strangers. */
export const histories = (shape: Shape = {}): fc.Arbitrary<History> => historyPlan(shape).map(expand).filter((history) => history.events.length > 0)

export function expand(plan: HistoryPlan): History {
  const world = new World(plan.choices, plan.skewsMs)
  plan.runs.forEach((request, index) => world.spawn(requester(world, index, request)))
  plan.schedules.forEach((schedule, index) => world.spawn(scheduleLife(world, index, schedule)))
  plan.sensors.forEach((sensor, index) => world.spawn(sensorLife(world, index, sensor)))
  plan.backfills.forEach((backfill, index) => world.spawn(backfillLife(world, index, backfill)))
  plan.strays.forEach((one, index) => world.spawn(stray(world, index, one)))
  world.play()
  return { plan, events: world.events, world }
}

/** Somebody, or the graph itself, asks for a run. */
function* requester(world: World, index: number, { by, run: plan }: RequestPlan): Actor {
  const run = {
    manual: () => new SimulatedRun(world, plan, `user:report-${index}`, { type: 'manual', user_id: 'ada', request_id: `r${index}` }),
    rerun: () =>
      new SimulatedRun(world, plan, `rerun:${index}`, { type: 'rerun', run_id: world.runs[0]?.runId ?? 'run_of_old', request_id: `r${index}`, mode: 'all' }),
    automation: () => new SimulatedRun(world, plan, `auto:${index}`, { type: 'automation', asset_key: 'asset0', decision_id: `d${index}` }),
  }[by]()
  world.runs.push(run)
  world.spawn(runLife(run))
  yield [run.request(world.writer())]
}
