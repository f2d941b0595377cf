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
 * Something that exists because code made it, and what others build on. As an input it is loaded in the partitions that
 * belong to the one being made; its methods choose others when that is not meant.
 */
export interface Asset<Key extends string, Value, P = undefined, Metadata = undefined> extends AnyAsset {
  readonly key: Key
  readonly [carries]?: { readonly value: Value; readonly partitions: P; readonly metadata: Metadata }
  /** The window this many windows later, or earlier when negative. `along` names the dimension to count in if several are time. */
  offset(windows: number, along?: DimensionOf<P>): Mapped<Value, P, 'windows', never>
  /** Windows from one offset to another, both included: `{ from: -6, to: 0 }` are seven, the last of them its own. */
  window(range: { from: number; to: number }, along?: DimensionOf<P>): Mapped<Value, P, 'many', never>
  /** All partitions, or all along one dimension: one table of all rows, or a Map by key for other values. */
  all<Dimension extends DimensionOf<P> = never>(dimension?: Dimension): Mapped<Value, P, 'many', Dimension>
  /** Its newest partition. */
  last(): Mapped<Value, P, 'one', never>
  /** The partition of this key, or of these keys, whatever is being made. */
  at(key: KeyOf<P>): Mapped<Value, P, 'one', never>
  at(keys: readonly KeyOf<P>[]): Mapped<Value, P, 'many', never>
  /** Which of its partitions, one or several, each partition is made from: `{ berlin: 'eu', boston: 'us' }`. */
  map<const To extends Readonly<Record<string, KeyOf<P> | readonly KeyOf<P>[]>>>(
    table: To,
  ): Mapped<Value, P, [Extract<To[keyof To], readonly unknown[]>] extends [never] ? 'each' : 'many', never, keyof To & string>
}

// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Kept<Value> = [Value] extends [void] ? NoValue : Value

/** A value that code computes, kept as JSON (or by an `io`). Returning nothing means that it keeps its own data. */
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
): Asset<Key, Kept<Value>, P, Metadata> {
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
>(key: Key, options: TableOptions<Row, Inputs, P, Resources, Metadata>): Asset<Key, DataTable<Row>, P, Metadata> {
  return define('table', key, options, table)
}

/**
 * A program in any language. It gets the files of its inputs, and reports over Dagster Pipes if it speaks it. It keeps its own data, unless
 * it hands rows back by the file that `output` names.
 */
export function command<const Key extends string, P = undefined, Inputs = Nothing, Row = never>(
  key: Key,
  options: CommandOptions<P, Inputs, Row>,
): Asset<Key, [Row] extends [never] ? NoValue : DataTable<Row>, P> {
  return define('command', key, options, command)
}

/** Rows that others make and Servo only reads. */
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
