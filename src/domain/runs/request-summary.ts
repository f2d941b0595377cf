import { sha256 } from '../../lib/hash.ts'
import type { SourceRef } from './trigger.ts'

/** Enough names to recognise a request by; how many there are is told besides. */
const NAMED = 20
/** Longer values of labels are kept as a hash, so that two that differ still do. */
const MAX_VALUE = 200

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
  /** The first of the labels by name, and how many there are. */
  readonly labels: Readonly<Record<string, string>>
  readonly label_count: number
  readonly priority: number
}

interface Request {
  readonly trigger_source_ref: SourceRef
  readonly asset_selection: readonly string[]
  readonly partition_selection?: readonly string[] | null | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly priority: number
}

export function requestSummary(request: Request, at: number): RequestSummary {
  const { trigger_source_ref: source, asset_selection: assets, partition_selection: partitions } = request
  const labels = Object.entries(request.labels).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    source,
    requested_at: at,
    assets: assets.slice(0, NAMED),
    asset_count: assets.length,
    partitions: partitions?.slice(0, NAMED) ?? null,
    partition_count: partitions?.length ?? 0,
    labels: Object.fromEntries(labels.slice(0, NAMED).map(([name, value]) => [name, shortened(value)])),
    label_count: labels.length,
    priority: request.priority,
  }
}

const shortened = (value: string): string => (value.length <= MAX_VALUE ? value : `sha256=${sha256(value)}`)
