import type { FailedPartition, LastChecks, WireStatus } from '../../../api/asset-contract.ts'
import type { WireAttempt, WireTask } from '../../../api/run-contract.ts'
import type { PartitionStatus } from '../../../api/status-contract.ts'
import { wireRow } from '../../../api/wire-row.ts'
import { checksIn } from '../../../contract/reported-check.ts'
import { runs } from '../../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../../domain/tasks/tasks.table.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import type { Knowledge } from '../knowledge.ts'
import { publishedRows } from '../published-rows.ts'
import { type FailingPartition, failingSince } from './failing-since.ts'

type Attempt = Pick<WireAttempt, 'task_key' | 'finished_at' | 'output' | 'error_message'>
type Task = Pick<WireTask, 'task_key' | 'partition_key'>

/**
 * The last results of the checks of an asset: of its last run or, if no check ran there because the body failed, of the run
 * that made what there is.
 */
export async function lastChecksOf(
  known: Knowledge,
  assetKey: string,
  lastRun: string | undefined,
  status: WireStatus | null,
): Promise<LastChecks | null> {
  for (const runId of new Set([lastRun, status?.last_materialization_run_id])) {
    const found = runId ? await checksOfRun(known, assetKey, runId) : null
    if (found !== null) return found
  }
  return null
}

async function checksOfRun(known: Knowledge, assetKey: string, runId: string): Promise<LastChecks | null> {
  const { its, attempts } = await attemptsOf(known, assetKey, runId)
  const partitions = new Map(its.map((task) => [task.task_key, task.partition_key]))
  let last: LastChecks | null = null
  for (const { task_key, finished_at: at, output } of attempts) {
    const checks = partitions.has(task_key) ? checksIn(output) : []
    if (at === null || checks.length === 0 || (last !== null && last.at > at)) continue
    last = { run_id: runId, partition_key: partitions.get(task_key) ?? null, at, checks }
  }
  return last
}

/** What went wrong in the last attempt at each of these partitions. Each of their runs is read once. */
export async function failedAttempts(
  known: Knowledge,
  assetKey: string,
  failed: readonly (FailingPartition & Pick<PartitionStatus, 'last_attempt_run_id' | 'last_attempt_at'>)[],
): Promise<FailedPartition[]> {
  const runIds = new Set(failed.map(({ last_attempt_run_id }) => last_attempt_run_id))
  const found = new Map<string, Attempt>()
  for (const runId of runIds) {
    if (runId === null) continue
    const { its, attempts } = await attemptsOf(known, assetKey, runId)
    const partitions = new Map(its.map((task) => [task.task_key, task.partition_key ?? '']))
    for (const attempt of attempts) {
      const key = JSON.stringify([runId, partitions.get(attempt.task_key)])
      if ((found.get(key)?.finished_at ?? '') <= (attempt.finished_at ?? '')) found.set(key, attempt)
    }
  }
  const since = await failingSince(known, assetKey, failed)
  return failed.map(({ partition_key, last_attempt_run_id: run_id, last_attempt_at: at }) => {
    const attempt = found.get(JSON.stringify([run_id, partition_key]))
    const checks = checksIn(attempt?.output).filter(({ ok }) => !ok)
    const error_message = attempt?.error_message ?? null
    return { partition_key, run_id, at, since: since.get(partition_key) ?? null, error_message, checks }
  })
}

async function attemptsOf(
  known: Knowledge,
  assetKey: string,
  runId: string,
): Promise<{ its: readonly Task[]; attempts: readonly Attempt[] }> {
  const rows = known.rows()
  if (rows.hot(runs).get(runId) !== undefined) {
    const its = [...rows.hot(tasks).under(runId)].filter(({ asset_key }) => asset_key === assetKey)
    return { its, attempts: [...rows.hot(taskAttempts).under(runId)].map((row) => wireRow(taskAttempts, row)) }
  }
  const where = `where run_id = ${quoteText(runId)}`
  const ofAsset = `${where} and asset_key = ${quoteText(assetKey)}`
  const its = await publishedRows(known.sql, tasks, ofAsset, ['task_key', 'partition_key'])
  const columns = ['task_key', 'finished_at', 'output', 'error_message'] as const
  return { its, attempts: await publishedRows(known.sql, taskAttempts, `${where} order by finished_at`, columns) }
}
