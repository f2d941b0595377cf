import { definitionOf } from './project/definition.ts'

/** Only in types: what a value stands for. */
export declare const carries: unique symbol

/** The value of an asset that keeps its own data: nobody can load it, but others can come after it. */
export interface NoValue {
  readonly [carries]: never
}

export interface AnyAsset {
  readonly key: string
  readonly [carries]?: { readonly value: unknown; readonly partitions?: unknown; readonly metadata?: unknown }
}

export type AssetKind = 'asset' | 'table' | 'command' | 'source'

export type PartitionsOf<A> = A extends { readonly [carries]?: { readonly partitions?: infer P } } ? P : never
export type ValueOf<A> = A extends { readonly [carries]?: { readonly value: infer Value } } ? Value : never

const kinds: readonly string[] = ['asset', 'table', 'command', 'source'] satisfies AssetKind[]

export function isAsset(value: unknown): value is AnyAsset {
  return kinds.includes(definitionOf(value)?.kind ?? '')
}
