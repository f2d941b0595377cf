import { checkedOptions } from './asset-check.ts'
import type { AssetOptions, CommandOptions, Nothing, SourceOptions, TableOptions } from './asset-options.ts'
import { callerOf } from './caller.ts'
import { definitionOf, optionsOf, withDefinition } from './definition.ts'
import { checkedAssetKey, invalid, show } from './invalid.ts'
import type { KeyOf } from './partitions.ts'
import type { Table } from './values.ts'

/** Only in types: what a value stands for. */
declare const carries: unique symbol

/** The value of an asset that keeps its own data: nobody can load it, but others can come after it. */
export interface NoValue {
  readonly [carries]: never
}

export interface AnyAsset {
  readonly key: string
  readonly [carries]?: { readonly value: unknown; readonly partitions?: unknown; readonly metadata?: unknown }
}

/** Something that exists because code made it, and what others build on. */
export interface Asset<Key extends string, Value, P = undefined, Metadata = undefined> extends AnyAsset {
  readonly key: Key
  readonly [carries]?: { readonly value: Value; readonly partitions: P; readonly metadata: Metadata }
  /** Its partition that lies so many windows later, or earlier when negative. */
  offset(windows: number): Mapped<Value>
  /** All its partitions, or all along one dimension: one table of all rows, or a Map by key for other values. */
  all<Dimension extends DimensionOf<P> = never>(
    dimension?: Dimension,
  ): Mapped<Value extends Table<unknown> ? Value : ReadonlyMap<KeyAlong<P, Dimension>, Value>>
}

/** An asset and which of its partitions are meant. */
export interface Mapped<Value> {
  readonly asset: AnyAsset
  readonly mapping: MappingData
  readonly [carries]?: { readonly value: Value }
}

/** A mapping as it is recorded. */
export type MappingData =
  | { readonly type: 'time_window'; readonly start_offset: number; readonly end_offset: number }
  | { readonly type: 'all'; readonly dimension?: string }

export type DimensionOf<P> = KeyOf<P> extends string ? never : keyof KeyOf<P> & string
/** What a Map of several partitions is keyed by: the key, the value along the dimension, or the key as text. */
export type KeyAlong<P, Dimension> = [Dimension] extends [never]
  ? KeyOf<P> & string extends never
    ? string
    : KeyOf<P> & string
  : Dimension extends keyof KeyOf<P>
    ? KeyOf<P>[Dimension]
    : never
export type PartitionsOf<A> = A extends { readonly [carries]?: { readonly partitions?: infer P } } ? P : never
export type ValueOf<A> = A extends { readonly [carries]?: { readonly value: infer Value } } ? Value : never

// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Kept<Value> = [Value] extends [void] ? NoValue : Value

/** A value that code computes, kept as JSON (or by an `io`). Returning nothing says that it keeps its own data. */
export function asset<
  const Key extends string,
  Value,
  Inputs = Nothing,
  P = undefined,
  Resources = Nothing,
  Metadata = undefined,
>(key: Key, options: AssetOptions<Value, Inputs, P, Resources, Metadata>): Asset<Key, Kept<Value>, P, Metadata> {
  return define('asset', key, options, asset)
}

/** Typed rows, kept as Parquet. The type of a row comes from `schema` alone, so that a mistake is reported where it is made. */
export function table<
  const Key extends string,
  Row,
  Inputs = Nothing,
  P = undefined,
  Resources = Nothing,
  Metadata = undefined,
>(key: Key, options: TableOptions<Row, Inputs, P, Resources, Metadata>): Asset<Key, Table<Row>, P, Metadata> {
  return define('table', key, options, table)
}

/** A program in any language. It keeps its own data, and reports over Dagster Pipes if it speaks it. */
export function command<const Key extends string, P = undefined>(key: Key, options: CommandOptions<P>): Asset<Key, NoValue, P> {
  return define('command', key, options, command)
}

/** Rows that others make and Servo only reads. */
export function source<const Key extends string, Row, P = undefined>(
  key: Key,
  options: SourceOptions<Row, P>,
): Asset<Key, Table<Row>, P> {
  return define('source', key, options, source)
}

export type AssetKind = 'asset' | 'table' | 'command' | 'source'

function define<Defined>(kind: AssetKind, key: string, options: object, ours: (...args: never[]) => unknown): Defined {
  checkedAssetKey(key)
  checkedOptions(kind, key, options)
  const value: AnyAsset & Record<string, unknown> = {
    key,
    offset: (windows: number) => mapped(value, { type: 'time_window', start_offset: windows, end_offset: windows }),
    all: (dimension?: string) => mapped(value, { type: 'all', ...(dimension === undefined ? {} : { dimension }) }),
  }
  return withDefinition(value, { kind, name: key, options, ...callerOf(ours) }) as Defined
}

function mapped(of: AnyAsset, mapping: MappingData): Mapped<unknown> {
  const { partitions } = optionsOf<{ partitions?: { data: { dimensions?: object } } }>(of)
  if (partitions === undefined)
    throw invalid('not_partitioned', `${of.key} has no partitions to choose from`, `Use ${of.key} as it is.`)
  if (mapping.type === 'time_window' && !Number.isSafeInteger(mapping.start_offset))
    throw invalid('bad_offset', `${of.key}.offset(${show(mapping.start_offset)}) needs a whole number`, 'Write .offset(-1).')
  if (mapping.type === 'all' && mapping.dimension !== undefined) {
    const known = Object.keys(partitions.data.dimensions ?? {})
    if (!known.includes(mapping.dimension))
      throw invalid(
        'bad_dimension',
        `${of.key} has no dimension ${show(mapping.dimension)}`,
        known.length > 0 ? `It has ${known.join(', ')}.` : 'It has one dimension: write .all().',
      )
  }
  return { asset: of, mapping }
}

export function isMapped(value: unknown): value is Mapped<unknown> {
  return typeof value === 'object' && value !== null && 'mapping' in value && isAsset((value as Mapped<unknown>).asset)
}

const kinds: readonly string[] = ['asset', 'table', 'command', 'source']

export function isAsset(value: unknown): value is AnyAsset {
  return kinds.includes(definitionOf(value)?.kind ?? '')
}

/** The asset that an input or a dependency means, and which partitions of it. */
export function upstream(of: AnyAsset | Mapped<unknown>): { asset: AnyAsset; mapping: MappingData | undefined } {
  return isMapped(of) ? of : { asset: of as AnyAsset, mapping: undefined }
}
