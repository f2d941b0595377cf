import type { Rows } from '../../model/rows.ts'
import { countTaskEnd, endRunIfDone } from '../runs/run-progress.ts'
import type { RunRow } from '../runs/runs.table.ts'
import { editKnown } from '../typed-rows.ts'
import { depSatisfaction } from './dep-satisfaction.table.ts'
import { tasks } from './tasks.table.ts'

/** Starts a run whose plan is complete: roots are ready, all other tasks wait. A plan that could never finish ends the run at once. */
export function startPlan(rows: Rows, run: RunRow, wake: (subject: string) => void): void {
  const { edges, loose } = countEdges(rows, run)
  run.error ??= loose ?? cycleOf(rows, run, edges)
  const plannedAt = run.planned_at ?? run.requested_at
  for (const [task_key, count] of edges) {
    const task = editKnown(rows.hot(tasks), run.run_id, task_key)
    task.deps_total = count
    task.row_version = run.row_version
    if (run.error !== null) {
      task.state = 'SKIPPED'
      task.finished_at = plannedAt
      countTaskEnd(run, 'SKIPPED')
    } else if (count === 0) {
      task.state = 'READY'
      task.ready_at = plannedAt
    } else {
      task.state = 'BLOCKED'
    }
  }
  for (const edge of [...rows.hot(depSatisfaction).under(run.run_id)]) {
    const stored = rows.hot(depSatisfaction).edit(run.run_id, edge.upstream_task_key, edge.downstream_task_key)
    if (stored === undefined) continue
    stored.row_version = run.row_version
    if (run.error === null || rows.hot(tasks).get(run.run_id, edge.upstream_task_key) === undefined) continue
    stored.resolution = 'SKIPPED'
    stored.satisfied_at = plannedAt
  }
  if (run.error !== null || run.tasks_total === 0) endRunIfDone(rows, run, plannedAt, wake)
}

interface Counted {
  /** Counts the tasks that each task waits for. Its edges may have come in several parts, in any order. */
  readonly edges: ReadonlyMap<string, number>
  /** The error for an edge with one end outside of the plan. */
  readonly loose: string | null
}

function countEdges(rows: Rows, run: RunRow): Counted {
  const edges = new Map<string, number>()
  for (const { task_key } of rows.hot(tasks).under(run.run_id)) edges.set(task_key, 0)
  // One of several errors is enough, but it must be the same one in whatever order the parts came.
  let loose: string | null = null
  for (const { upstream_task_key: upstream, downstream_task_key: downstream } of rows.hot(depSatisfaction).under(run.run_id)) {
    const count = edges.get(downstream)
    if (count !== undefined) edges.set(downstream, count + 1)
    if (count !== undefined && edges.has(upstream)) continue
    const what = count === undefined ? `and ${downstream}` : 'which'
    const flaw = `${downstream} depends on ${upstream}, ${what} is not in the plan`
    if (loose === null || flaw < loose) loose = flaw
  }
  return { edges, loose }
}

/** True if tasks wait for each other in a circle: then the plan could never finish. */
function cycleOf(rows: Rows, run: RunRow, edges: ReadonlyMap<string, number>): string | null {
  const waiting = new Map(edges)
  const free = [...edges].flatMap(([key, count]) => (count === 0 ? [key] : []))
  let reached = 0
  for (let key = free.pop(); key !== undefined; key = free.pop()) {
    reached += 1
    for (const { downstream_task_key: downstream } of rows.hot(depSatisfaction).under(run.run_id, key)) {
      const left = (waiting.get(downstream) ?? 0) - 1
      waiting.set(downstream, left)
      if (left === 0) free.push(downstream)
    }
  }
  if (reached === waiting.size) return null
  const stuck = [...waiting].filter(([, left]) => left > 0).map(([key]) => key)
  return `the plan has a cycle through ${stuck.sort().slice(0, 5).join(', ')}`
}
