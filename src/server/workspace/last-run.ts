import type { AssetDetail } from '../../api/asset-contract.ts'
import { partitionStatus, type StatusRow } from '../../domain/partitions/partition-status.table.ts'
import { runs } from '../../domain/runs/runs.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import { toIso, toMs } from '../../lib/time.ts'
import { historyIndex } from '../../model/system-tables.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { publishedRows } from './published-rows.ts'

interface Touched {
  readonly run_id: string
  readonly at: number
}

/**
 * The last run that made an asset or tried to. Runs that are not sealed are in memory; earlier ones are named by the
 * status of the partitions, which is one row for an asset without partitions.
 */
export async function lastRunOf(
  known: Knowledge,
  assetKey: string,
  status: StatusRow | undefined,
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

const attemptIn = ({ last_attempt_run_id: run_id, last_attempt_at: at }: StatusRow): Touched | undefined =>
  run_id === null || at === null ? undefined : { run_id, at }

async function lastAttempt({ sql }: Knowledge, assetKey: string): Promise<Touched | undefined> {
  const ofAsset = `where asset_key = ${quoteText(assetKey)} and last_attempt_run_id is not null`
  const newest = `${ofAsset} order by last_attempt_at desc limit 1`
  const [row] = await publishedRows(sql, partitionStatus, newest, ['last_attempt_run_id', 'last_attempt_at'])
  if (row === undefined || row.last_attempt_run_id === null || row.last_attempt_at === null) return undefined
  return { run_id: row.last_attempt_run_id, at: toMs(row.last_attempt_at) }
}

function later(a: Touched | undefined, b: Touched | undefined): Touched | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return b.at > a.at ? b : a
}
