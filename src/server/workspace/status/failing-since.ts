import type { PartitionStatus } from '../../../api/status-contract.ts'
import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../../../domain/tasks/tasks.table.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toIso, toMs } from '../../../lib/time.ts'
import type { Knowledge } from '../knowledge.ts'

/** A partition whose last attempt failed, and when it was last made. */
export type FailingPartition = Pick<PartitionStatus, 'partition_key' | 'last_materialization_at'>

/**
 * Since when attempts at each of these partitions of an asset fail: the end of the first one that failed after the last materialization, by the
 * attempts on record. Runs that are not sealed are in memory, earlier ones in the published tables.
 */
export async function failingSince(
  known: Knowledge,
  assetKey: string,
  failing: readonly FailingPartition[],
): Promise<Map<string, string>> {
  if (failing.length === 0) return new Map()
  const since = await published(known, assetKey, failing)
  const partitions = new Map(failing.map((each) => [each.partition_key, each]))
  const keys = new Set(keysOfAsset(known.rows(), assetKey))
  for (const task of known.rows().hot(tasks).all()) {
    if (task.asset_key === null || !keys.has(task.asset_key)) continue
    for (const key of task.partition_keys ?? [task.partition_key ?? '']) {
      const partition = partitions.get(key)
      const at = partition === undefined ? undefined : firstFailure(known, task, partition)
      if (at !== undefined && at < (since.get(key) ?? at + 1)) since.set(key, at)
    }
  }
  return new Map([...since].map(([key, at]) => [key, toIso(at)]))
}

function firstFailure(
  known: Knowledge,
  { run_id, task_key }: TaskRow,
  { last_materialization_at: madeAt }: FailingPartition,
): number | undefined {
  const attempts = known.rows().hot(taskAttempts)
  for (let number = 1, row = attempts.get(run_id, task_key, number); row !== undefined; ) {
    const { outcome, finished_at } = row
    if (outcome === 'FAILED' && finished_at !== null && (madeAt === null || finished_at > toMs(madeAt))) return finished_at
    number += 1
    row = attempts.get(run_id, task_key, number)
  }
  return undefined
}

async function published(
  known: Knowledge,
  assetKey: string,
  failing: readonly FailingPartition[],
): Promise<Map<string, number>> {
  const asked = failing.map(({ partition_key, last_materialization_at: madeAt }) => {
    const made = madeAt === null ? 'NULL' : quoteText(madeAt)
    return `(${quoteText(partition_key)}, ${made}::timestamptz)`
  })
  const keys = keysOfAsset(known.rows(), assetKey).map(quoteText)
  const rows = await known.sql(`with asked(key, made) AS (values ${asked.join(', ')})
    select asked.key, min(a.finished_at) AS since
    from tasks AS t join task_attempts AS a on a.run_id = t.run_id and a.task_key = t.task_key
      join asked on coalesce(t.partition_key, '') = asked.key or list_contains(t.partition_keys, asked.key)
    where t.asset_key in (${keys.join(', ')}) and a.outcome = 'FAILED' and (made is null or a.finished_at > made)
    group by asked.key`)
  return new Map(rows.map(({ key, since }) => [String(key), toMs(String(since))]))
}
