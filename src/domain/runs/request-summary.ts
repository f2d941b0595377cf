import type { SourceRef } from './trigger.ts'

/** Enough names to recognise a request by; how many there are is told besides. */
const NAMED = 20

/** Who asked for a run, when, and for what: short, because it is kept with the run key for ever. */
export interface RequestSummary {
  readonly source: SourceRef
  readonly requested_at: number
  /** The first of the selected assets, and how many there are. */
  readonly assets: readonly string[]
  readonly asset_count: number
  /** The same of partitions; null for none. */
  readonly partitions: readonly string[] | null
  readonly partition_count: number
}

interface Request {
  readonly trigger_source_ref: SourceRef
  readonly asset_selection: readonly string[]
  readonly partition_selection?: readonly string[] | null | undefined
}

export function requestSummary(request: Request, at: number): RequestSummary {
  const { trigger_source_ref: source, asset_selection: assets, partition_selection: partitions } = request
  return {
    source,
    requested_at: at,
    assets: assets.slice(0, NAMED),
    asset_count: assets.length,
    partitions: partitions?.slice(0, NAMED) ?? null,
    partition_count: partitions?.length ?? 0,
  }
}
