import { sha256 } from '../../lib/hash.ts'
import type { Controller } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { assetDefinitions } from '../assets/asset-definitions.table.ts'
import { graphOf, type RecordedGraph } from '../assets/definitions.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { partitionsOfChunkRun } from '../backfills/frozen-set.ts'
import { dynamicKeysOf } from '../partitions/dynamic-keys.ts'
import { planRun } from '../planning/plan.ts'
import type { PlanPart } from '../planning/plan-parts.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { isRowOf } from '../typed-rows.ts'
import { becauseOf } from './event-context.ts'
import { isRunOver, type RunRow, runs } from './runs.table.ts'

/** Plans decided at once: some hundredths of a second. Thousands of ticks that were missed are on record before most of them are planned. */
const MAX_PLANS = 500

/**
 * Turns every requested run into tasks, by the newest graph; the plan records which one that was. The parts of a plan that is larger than
 * a segment are in several. If a crash came between those, the rest of the plan is written later.
 */
export function planController(): Controller {
  const unplanned = new Set<Readonly<RunRow>>()
  /** By the run that must end first. */
  const waitingFor = new Map<string, Set<Readonly<RunRow>>>()
  let graph: RecordedGraph | undefined
  const graphNow = (rows: Rows): RecordedGraph => {
    graph ??= graphOf(rows.hot(assetDefinitions).all())
    return graph
  }
  return {
    name: 'plan',
    doc: 'Turns run requests into tasks.',
    watches: [runs, assetDefinitions],
    observe: (table, row) => {
      if (table === assetDefinitions) graph = undefined
      if (!isRowOf(runs, table, row)) return
      if (isUnplanned(row) || isHalfPlanned(row)) unplanned.add(row)
      if (!isRunOver(row.state)) return
      for (const waiting of waitingFor.get(row.run_id) ?? []) unplanned.add(waiting)
      waitingFor.delete(row.run_id)
    },
    decide({ rows, now }): readonly NewEvent[] {
      const events: NewEvent[] = []
      if (unplanned.size === 0) return events
      const { graph: assets, version, mappings } = graphNow(rows)
      const partitions = new GraphPartitions(mappings, { nowMs: now, dynamicKeys: dynamicKeysOf(rows) })
      for (const run of unplanned) {
        if (events.length >= MAX_PLANS) break
        unplanned.delete(run)
        if (!isUnplanned(run) && !isHalfPlanned(run)) continue
        const earlier = unfinished(rows, run)
        if (earlier !== undefined && isUnplanned(run)) {
          waitingFor.set(earlier, (waitingFor.get(earlier) ?? new Set()).add(run))
          continue
        }
        const plan = planRun({
          run,
          graph: assets,
          graphVersion: version,
          partitions: partitionsOfChunkRun(rows, run, mappings) ?? partitions,
        })
        const whole = 'error' in plan ? [failedPlan(run, version, plan.error)] : plan.events
        const parts = isUnplanned(run) ? whole : missingParts(run, whole)
        for (const part of parts) events.push(newEvent(PlanCreated, part, becauseOf(rows, run)))
      }
      return events
    },
  }
}

/** A run that must end before this one is planned, if there is one. A run that is no longer in memory has ended. */
function unfinished(rows: Rows, { after_run_ids }: Readonly<RunRow>): string | undefined {
  return after_run_ids?.find((id) => {
    const earlier = rows.hot(runs).get(id)
    return earlier !== undefined && !isRunOver(earlier.state)
  })
}

const isUnplanned = (run: Readonly<RunRow>): boolean => run.state === 'PENDING' && run.plan_parts === 0

/** True if a crash came between two segments of the plan. Parts that were decided together are folded together, so nothing else looks so. */
const isHalfPlanned = ({ state, plan_parts, plan_parts_seen }: Readonly<RunRow>): boolean =>
  state === 'PENDING' && plan_parts_seen > 0 && plan_parts_seen < plan_parts

/** The parts of a plan that are not on record. If it would be another plan by now, they say so, and the run fails. */
function missingParts(run: Readonly<RunRow>, whole: readonly PlanPart[]): PlanPart[] {
  const missing = run.plan_parts_missing ?? []
  const { run_id, plan_id, graph_version, plan_parts: parts } = run
  if (plan_id === null || whole[0]?.plan_id === plan_id) return whole.filter(({ part }) => missing.includes(part))
  const error =
    'the server stopped while it wrote the plan, and the project or its partitions have changed since. Request the run again.'
  return missing.map((part) => ({ run_id, plan_id, graph_version, part, parts, tasks: [], error }))
}

function failedPlan(run: Readonly<RunRow>, version: string, error: string): PlanPart {
  const plan_id = `plan_${sha256(`${run.run_id}\n${error}`).slice(0, 26)}`
  return { run_id: run.run_id, plan_id, graph_version: version, part: 0, parts: 1, tasks: [], error: error.slice(0, 8_192) }
}
