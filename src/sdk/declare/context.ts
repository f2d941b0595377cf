import type { ChangeKeys } from '../partitions/key-changes.ts'
import type { DynamicPartitions, KeyOf, SpanOf } from '../partitions/partitions.ts'
import type { Ranges } from '../partitions/ranges.ts'
import type { Opened } from './resource.ts'

type Fields = Readonly<Record<string, unknown>>

export interface Log {
  debug(message: string, fields?: Fields): void
  info(message: string, fields?: Fields): void
  warn(message: string, fields?: Fields): void
  error(message: string, fields?: Fields): void
}

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** The partition being materialized. With `ranges()`, all partitions of the range: `key` names the range. */
export type PartitionOf<P> = [P] extends [undefined]
  ? undefined
  : P extends Ranges<infer Key, infer Span>
    ? { readonly key: string; readonly keys: readonly Key[]; readonly window: Span }
    : { readonly key: KeyOf<P>; readonly window: SpanOf<P> }

/** The context of a body: everything except its inputs. */
export interface Context<Partitions, Resources, Metadata> {
  /** Undefined for an asset without partitions. */
  readonly partition: PartitionOf<Partitions>
  readonly resources: Opened<Resources>
  /** The number of the attempt, from 1. */
  readonly attempt: number
  readonly runId: string
  /**
   * W3C trace context: the trace of the run and the span of this attempt. Send it as a header of that name, or set it as `TRACEPARENT` of
   * processes that you start. Undefined in tests with `materialize`.
   */
  readonly traceparent: string | undefined
  /** Fires when the run is cancelled or the attempt takes too long. Pass it to fetch and similar functions. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Records metadata of the materialization. Later calls add to earlier ones. */
  metadata(facts: [Metadata] extends [undefined] ? Readonly<Record<string, Json>> : Metadata): void
  /**
   * Reports the data version: any string that is the same for the same data. Default: a checksum of the stored value. Downstream assets
   * stay fresh if a new materialization has the version they read. An asset that stores its own data has no version unless it reports one.
   */
  dataVersion(version: string): void
  /** Adds and removes keys of a dynamic set. The changes take effect if the attempt succeeds. */
  partitions(set: DynamicPartitions): ChangeKeys
}

/** Inputs share one object with the context, so they cannot have these names. */
export const contextNames = [
  'partition',
  'resources',
  'attempt',
  'runId',
  'traceparent',
  'signal',
  'log',
  'metadata',
  'dataVersion',
  'partitions',
] as const
