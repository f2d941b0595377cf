import type { AnyAsset, AssetKind, carries, NoValue } from '../any-asset.ts'
import { callerOf } from '../caller.ts'
import { withDeclaration } from '../declaration.ts'
import { checkedAssetKey } from '../invalid.ts'
import { type Mapped, wordsOf } from '../partitions/mapped.ts'
import type { KeyOf } from '../partitions/partitions.ts'
import { checkedOptions } from './asset-check.ts'
import type { AssetOptions, CommandOptions, Nothing, Returnable, SourceOptions, TableOptions } from './asset-options.ts'
import type { DimensionOf } from './input-value.ts'
import type { Keepable } from './json-value.ts'
import type { DataTable } from './values.ts'

/**
 * Something that code materializes and that other assets build on: a table, a file, a value. As an input, Servo loads the partitions that
 * match the one being materialized; the methods below choose other partitions.
 */
export interface Asset<Key extends string, Value, P = undefined, Metadata = undefined, Inputs = Nothing> extends AnyAsset {
  readonly key: Key
  readonly [carries]?: { readonly value: Value; readonly partitions: P; readonly metadata: Metadata; readonly inputs: Inputs }
  /** The window `windows` later, or earlier if negative: `.offset(-1)`. With several time dimensions, `along` names the one to count in. */
  offset(windows: number, along?: DimensionOf<P>): Mapped<Value, P, 'windows', never>
  /** The windows from one offset to another, both included: `{ from: -6, to: 0 }` is the current window and the six before it. */
  window(range: { from: number; to: number }, along?: DimensionOf<P>): Mapped<Value, P, 'many', never>
  /** All partitions, or all along one dimension: a table with all rows, or a Map by key for other values. */
  all<Dimension extends DimensionOf<P> = never>(dimension?: Dimension): Mapped<Value, P, 'many', Dimension>
  /** The newest partition. */
  last(): Mapped<Value, P, 'one', never>
  /** The partition with this key, or the partitions with these keys, for every partition being materialized. */
  at<const Keys extends KeyOf<P> | readonly KeyOf<P>[]>(
    keys: Keys,
  ): Mapped<Value, P, Keys extends readonly unknown[] ? 'many' : 'one', never>
  /** Maps each downstream partition to one or several of these: `{ berlin: 'eu', boston: 'us' }`. */
  map<const To extends Readonly<Record<string, KeyOf<P> | readonly KeyOf<P>[]>>>(
    table: To,
  ): Mapped<Value, P, [Extract<To[keyof To], readonly unknown[]>] extends [never] ? 'each' : 'many', never, keyof To & string>
}

// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Kept<Value> = [Value] extends [void] ? NoValue : Value

/** A value that code computes, stored as JSON or by an `io`. An asset that returns nothing stores its own data. */
export function asset<
  const Key extends string,
  Value extends Returnable<Inputs, P>,
  Inputs = Nothing,
  P = undefined,
  Resources = Nothing,
  Metadata = undefined,
>(
  key: Key,
  options: AssetOptions<Value, Inputs, P, Resources, Metadata> & Keepable<NoInfer<Value>>,
): Asset<Key, Kept<Value>, P, Metadata, Inputs> {
  return define('asset', key, options, asset)
}

/** Typed rows, stored as Parquet. The type of a row comes from `schema`, so the compiler reports a mistake where it is. */
export function table<
  const Key extends string,
  Row,
  Inputs = Nothing,
  P = undefined,
  Resources = Nothing,
  Metadata = undefined,
>(key: Key, options: TableOptions<Row, Inputs, P, Resources, Metadata>): Asset<Key, DataTable<Row>, P, Metadata, Inputs> {
  return define('table', key, options, table)
}

/**
 * A program in any language. It gets the files of its inputs, and may report over Dagster Pipes. It stores its own data, unless it returns rows
 * in the file that `output` names.
 */
export function command<const Key extends string, P = undefined, Inputs = Nothing, Row = never>(
  key: Key,
  options: CommandOptions<P, Inputs, Row>,
): Asset<Key, [Row] extends [never] ? NoValue : DataTable<Row>, P, undefined, Inputs> {
  return define('command', key, options, command)
}

/** Rows that other programs write and Servo only reads. */
export function source<const Key extends string, Row, P = undefined>(
  key: Key,
  options: SourceOptions<Row, P>,
): Asset<Key, DataTable<Row>, P> {
  return define('source', key, options, source)
}

function define<Defined>(kind: AssetKind, key: string, options: object, ours: (...args: never[]) => unknown): Defined {
  checkedAssetKey(key)
  checkedOptions(kind, key, options)
  const value: AnyAsset = { key }
  Object.assign(value, wordsOf(value))
  return withDeclaration(value, { kind, name: key, options, ...callerOf(ours) }) as Defined
}
