import { declarationOf, optionsOf } from './declaration.ts'

/** Exists only in types: carries the type of the value. */
export declare const carries: unique symbol

/** The value of an asset that stores its own data: other assets cannot load it, but can depend on it. */
export interface NoValue {
  readonly [carries]: never
}

export interface AnyAsset {
  readonly key: string
  readonly [carries]?: {
    readonly value: unknown
    readonly partitions?: unknown
    readonly metadata?: unknown
    readonly inputs?: unknown
  }
}

const assetKinds = ['asset', 'table', 'command', 'source'] as const
export type AssetKind = (typeof assetKinds)[number]

export type PartitionsOf<A> = A extends { readonly [carries]?: { readonly partitions?: infer P } } ? P : never
export type InputsOf<A> = A extends { readonly [carries]?: { readonly inputs?: infer Inputs } } ? Inputs : never
export type ValueOf<A> = A extends { readonly [carries]?: { readonly value: infer Value } } ? Value : never

/** The kind of an asset; undefined for a value that is not an asset. */
export function assetKindOf(value: unknown): AssetKind | undefined {
  const kind = declarationOf(value)?.kind
  return assetKinds.find((each) => each === kind)
}

export function isAsset(value: unknown): value is AnyAsset {
  return assetKindOf(value) !== undefined
}

/** True if its value is rows: of a table, a source, or a command whose program hands rows back. */
export function hasRows(asset: AnyAsset): boolean {
  const kind = assetKindOf(asset)
  if (kind !== 'command') return kind === 'table' || kind === 'source'
  return optionsOf<{ schema?: unknown }>(asset).schema !== undefined
}
