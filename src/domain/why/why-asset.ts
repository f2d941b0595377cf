import type { Blamed } from '../partitions/explain.ts'
import type { Cause } from '../partitions/status-names.ts'
import { type Reason, reason, type WhyAnswer, type WhyVerdict } from './reasons.ts'

/** The status of one partition, or of an asset that is made as a whole. */
export interface ShownStatus {
  readonly is_stale: boolean
  readonly last_materialization_at: string | null
  readonly last_materialization_run_id: string | null
  readonly last_attempt_at: string | null
  readonly last_attempt_outcome: string | null
  readonly last_attempt_run_id: string | null
  readonly wiped_at: string | null
  readonly because: readonly {
    readonly cause: Cause
    readonly asset_key: string
    readonly partition_keys: readonly string[]
    readonly count: number
    readonly upstream: Blamed | null
    readonly since: string | null
    readonly path: readonly string[]
  }[]
}

/** How many partitions of an asset are how. */
export interface ShownCounts {
  readonly partitions: number
  readonly made: number
  readonly stale: number
  readonly failed: number
  readonly missing: number
  readonly last_run: { readonly run_id: string; readonly at: string } | null
}

export interface KnownAsset {
  readonly asset_key: string
  readonly partition: string | null
  /** Who asked for a run; undefined if it is not on record any more. */
  readonly originOf: (runId: string) => Reason | undefined
  /** Why the last attempt failed, and since when attempts fail. */
  readonly attemptError: string | null
  readonly failingSince: string | null
  /** Unfinished runs that make it, or may. */
  readonly underWay: readonly Reason[]
  /** The schedules and sensors that run it, each with what it did last. */
  readonly automation: readonly Reason[]
}

export function whyAsset(known: KnownAsset, status: ShownStatus): WhyAnswer {
  const {
    last_materialization_at: madeAt,
    last_materialization_run_id: runId,
    wiped_at,
    last_attempt_outcome: outcome,
  } = status
  const origin = runId === null ? undefined : known.originOf(runId)
  const made =
    madeAt === null
      ? []
      : [runId === null ? reason('made_outside', { at: madeAt }) : reason('made_by_run', { run_id: runId, at: madeAt })]
  const { last_attempt_run_id: failedRun, last_attempt_at: failedAt } = status
  const failed =
    outcome === 'FAILED' && failedRun !== null && failedAt !== null
      ? [
          reason(
            'attempt_failed',
            { run_id: failedRun, at: failedAt, since: known.failingSince, error: known.attemptError },
            [known.originOf(failedRun)].flatMap(present),
          ),
        ]
      : []
  // That it was never made is what the answer begins with.
  const stale = status.because.filter(({ cause, path }) => madeAt !== null || cause !== 'never_materialized' || path.length > 1)
  const causes = stale.map((cause) => reason('stale_because', cause))
  const verdict: WhyVerdict = madeAt === null ? 'never_made' : status.is_stale ? 'stale' : runId === null ? 'fresh' : 'ran'
  const history = [...present(origin), ...made]
  const wiped = wiped_at === null ? [] : [reason('wiped', { at: wiped_at })]
  const because =
    verdict === 'ran' || verdict === 'fresh'
      ? [...history, ...failed, ...known.underWay, reason('fresh', {}), ...known.automation]
      : [...failed, ...known.underWay, ...causes, ...history, ...wiped, ...known.automation]
  return answer(known, verdict, because)
}

/** The same of an asset with partitions, when none of them is asked about. */
export function whyAssetOfPartitions(known: KnownAsset, { last_run, ...counts }: ShownCounts): WhyAnswer {
  const { partitions, stale, failed, missing } = counts
  const verdict = missing === partitions ? 'never_made' : stale + failed + missing > 0 ? 'stale' : 'fresh'
  const last =
    last_run === null
      ? []
      : [reason('last_run', { run_id: last_run.run_id, at: last_run.at }, present(known.originOf(last_run.run_id)))]
  return answer(known, verdict, [reason('partition_counts', counts), ...last, ...known.underWay, ...known.automation])
}

const present = (each: Reason | undefined): Reason[] => (each === undefined ? [] : [each])

const answer = ({ asset_key, partition }: KnownAsset, verdict: WhyVerdict, because: readonly Reason[]): WhyAnswer => ({
  subject: { kind: 'asset', id: asset_key, name: asset_key, partition, message_id: null },
  verdict,
  at: null,
  timezone: null,
  because,
})
