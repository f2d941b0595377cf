import type { AssetDetail } from '../../api/asset-contract.ts'
import type { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { runs } from '../../domain/runs/runs.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { Row } from '../../model/table.ts'
import { type Knowledge, lookup } from './knowledge.ts'

interface Touched {
  readonly run_id: string
  readonly at: number
}

/**
 * The last run that made an asset or tried to. Runs that are not sealed are in memory; of all before them the status of the
 * partitions knows, which for an asset without partitions is one row.
 */
export async function lastRunOf(
  known: Knowledge,
  assetKey: string,
  status: Row<typeof partitionStatus> | undefined,
): Promise<AssetDetail['last_run']> {
  const before = status === undefined ? await lastAttempt(known, assetKey) : attemptIn(status)
  const last = later(inMemory(known, assetKey), before)
  if (last === undefined) return null
  const hot = known.rows().hot(runs).get(last.run_id)
  const state = hot?.state ?? (await lookup(known, historyIndex, runs.name, last.run_id))?.state
  return { run_id: last.run_id, at: toIso(last.at), state: state ?? 'UNKNOWN' }
}

function inMemory(known: Knowledge, assetKey: string): Touched | undefined {
  let last: Touched | undefined
  for (const { asset_key, run_id, finished_at } of known.rows().hot(tasks).all()) {
    if (asset_key !== assetKey) continue
    const run = known.rows().hot(runs).get(run_id)
    if (run !== undefined) last = later(last, { run_id, at: finished_at ?? run.started_at ?? run.requested_at })
  }
  return last
}

const attemptIn = ({ last_attempt_run_id: run_id, last_attempt_at: at }: Row<typeof partitionStatus>): Touched | undefined =>
  run_id === null || at === null ? undefined : { run_id, at }

async function lastAttempt({ sql }: Knowledge, assetKey: string): Promise<Touched | undefined> {
  const [row] = await sql(
    `select last_attempt_run_id as run_id, last_attempt_at as at from partition_status
     where asset_key = '${assetKey.replaceAll("'", "''")}' and last_attempt_run_id is not null
     order by last_attempt_at desc limit 1`,
  )
  return row === undefined ? undefined : { run_id: String(row['run_id']), at: toMs(String(row['at'])) }
}

function later(a: Touched | undefined, b: Touched | undefined): Touched | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.at > a.at ? b : a
}
