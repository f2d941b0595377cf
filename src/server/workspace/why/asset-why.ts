import type { RunDetail } from '../../../api/run-contract.ts'
import type { StatusApi } from '../../../api/status-contract.ts'
import { knownAsset } from '../../../domain/selection/selected-assets.ts'
import type { Reason, WhyAnswer } from '../../../domain/why/reasons.ts'
import { type KnownAsset, whyAsset, whyAssetOfPartitions } from '../../../domain/why/why-asset.ts'
import { isServoError } from '../../../lib/error.ts'
import type { Knowledge } from '../knowledge.ts'
import { lastRunOf } from '../last-run.ts'
import { failingSince } from '../status/failing-since.ts'
import { type AskAutomation, automationOf, underWay } from './asset-automation.ts'
import { originOfRun } from './origins.ts'

interface AssetSources {
  readonly statuses: StatusApi
  readonly run: (runId: string) => Promise<RunDetail>
  readonly ask: AskAutomation
}

/** Why an asset or a partition of it was made or was not. */
export async function whyOfAsset(
  known: Knowledge,
  assetKey: string,
  partition: string | undefined,
  { statuses, run, ask }: AssetSources,
): Promise<WhyAnswer> {
  const { asset_key, partitions } = knownAsset(known.graph.get().graph, assetKey)
  const automation = await automationOf(known, asset_key, ask)
  const asset = (
    key: string | null,
    origins: ReadonlyMap<string, Reason>,
    failure: { error: string | null; since: string | null } | null,
  ): KnownAsset => ({
    asset_key,
    partition: key,
    originOf: (runId) => origins.get(runId),
    attemptError: failure?.error ?? null,
    failingSince: failure?.since ?? null,
    underWay: underWay(known, asset_key, key),
    automation,
  })
  if (partitions != null && partition === undefined) {
    const [counted] = await statuses.summaries(asset_key)
    const last_run = await lastRunOf(known, asset_key, undefined)
    const failed = counted?.last_attempt_failed ?? 0
    const failedFirst = failed - (counted?.statuses.MATERIALIZED_BUT_LAST_ATTEMPT_FAILED ?? 0)
    const counts = {
      partitions: counted?.partitions ?? 0,
      made: counted?.statuses.MATERIALIZED ?? 0,
      stale: counted?.statuses.STALE ?? 0,
      failed,
      missing: (counted?.statuses.NEVER_MATERIALIZED ?? 0) - failedFirst,
      last_run,
    }
    return whyAssetOfPartitions(asset(null, await originsOf(known, [last_run?.run_id]), null), counts)
  }
  const status = await statuses.why(asset_key, partition)
  const key = status.partition_key === '' ? null : status.partition_key
  const failed = status.last_attempt_outcome === 'FAILED' ? status.last_attempt_run_id : null
  const origins = await originsOf(known, [status.last_materialization_run_id, failed])
  if (failed === null) return whyAsset(asset(key, origins, null), status)
  const since = (await failingSince(known, asset_key, [status])).get(status.partition_key) ?? null
  const error = await errorIn(run, failed, asset_key, key)
  return whyAsset(asset(key, origins, { error, since }), status)
}

async function originsOf(known: Knowledge, runIds: readonly (string | null | undefined)[]): Promise<Map<string, Reason>> {
  const found = new Map<string, Reason>()
  for (const id of runIds) {
    const origin = id == null ? undefined : await originOfRun(known, id)
    if (id != null && origin !== undefined) found.set(id, origin)
  }
  return found
}

/** Why the task that was to make a partition failed, if the run is on record. */
async function errorIn(
  run: AssetSources['run'],
  runId: string,
  assetKey: string,
  partition: string | null,
): Promise<string | null> {
  try {
    const { tasks } = await run(runId)
    const own = tasks.filter(({ asset_key }) => asset_key === assetKey)
    const task = own.find(
      ({ partition_key, partition_keys }) =>
        (partition_key ?? null) === partition || (partition !== null && partition_keys?.includes(partition) === true),
    )
    return (task ?? own[0])?.error_message ?? null
  } catch (error) {
    if (isServoError(error, 'not_found')) return null
    throw error
  }
}
