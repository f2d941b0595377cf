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

/** The partition that is made or, of an asset that is made in ranges, all of them: `key` names them together. */
export type PartitionOf<P> = [P] extends [undefined]
  ? undefined
  : P extends Ranges<infer Key, infer Span>
    ? { readonly key: string; readonly keys: readonly Key[]; readonly window: Span }
    : { readonly key: KeyOf<P>; readonly window: SpanOf<P> }

/** The context of a body: everything besides its inputs. */
export interface Context<Partitions, Resources, Metadata> {
  /** Undefined for an asset without partitions. */
  readonly partition: PartitionOf<Partitions>
  readonly resources: Opened<Resources>
  /** 1 for the first. */
  readonly attempt: number
  readonly runId: string
  /** Fires when the run is cancelled or takes too long. Hand it to fetch and the like. */
  readonly signal: AbortSignal
  readonly log: Log
  /** Facts to keep with the materialization. Later calls add to earlier ones. */
  metadata(facts: [Metadata] extends [undefined] ? Readonly<Record<string, Json>> : Metadata): void
  /**
   * The version of the data, instead of a checksum of the value: any text, the same for the same data. What was made from this asset
   * stays fresh if it is made again with the version that was read. An asset that keeps its own data has no version unless it says so.
   */
  dataVersion(version: string): void
  /** The keys of a dynamic set, for adding and removing some. That takes effect if the attempt succeeds. */
  partitions(set: DynamicPartitions): ChangeKeys
}

/** Inputs share one object with the context, so they cannot have these names. */
export const contextNames = [
  'partition',
  'resources',
  'attempt',
  'runId',
  'signal',
  'log',
  'metadata',
  'dataVersion',
  'partitions',
] as const
