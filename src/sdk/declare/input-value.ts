import type { carries, PartitionsOf, ValueOf } from '../any-asset.ts'
import type { Own, Takes } from '../partitions/mapped.ts'
import type { KeyOf, KindOf } from '../partitions/partitions.ts'
import type { DataTable } from './values.ts'

/**
 * The type of an input in code. The compiler follows the rule of `takesMany`, which decides when the input is loaded: a table is
 * one relation however many partitions it has, another value is a Map when there may be several.
 */
export type InputValue<Input, P> =
  Input extends Own<infer Value>
    ? Value | undefined
    : {
        one: ValueOf<Input>
        many: Several<ValueOf<Input>, PartitionsOf<Input>, AlongOf<Input>>
        unknown: ValueOf<Input> | Several<ValueOf<Input>, PartitionsOf<Input>, AlongOf<Input>>
      }[CountOf<TakesOf<Input>, P, PartitionsOf<Input>>]

/** One table of all rows, or a Map by key. */
type Several<Value, P, Along> = Value extends DataTable<unknown> ? Value : ReadonlyMap<KeyAlong<P, Along>, Value>

export type DimensionOf<P> = KeyOf<P> extends string ? never : keyof KeyOf<P> & string

/** The key type of a Map of several partitions: the key, the value along the dimension, or the key as text. */
export type KeyAlong<P, Along> = [Along] extends [never]
  ? KeyOf<P> extends string
    ? KeyOf<P>
    : string
  : Along extends keyof KeyOf<P>
    ? KeyOf<P>[Along]
    : never

type AlongOf<Input> = Input extends { readonly [carries]?: { readonly along: infer Along } } ? Along : never
type TakesOf<Input> = Input extends { readonly [carries]?: { readonly takes: infer T extends Takes } } ? T : 'windows'

type AnyDimensions = Readonly<Record<string, unknown>>

export interface InRanges {
  readonly ranges: object
}

/** How many values there are; `unknown` where the types do not determine it. */
type CountOf<T, Down, Up> = T extends 'one' | 'many'
  ? T
  : [Up] extends [undefined]
    ? 'one'
    : // An asset without partitions takes all, and a range what all of its partitions take.
      [Down] extends [undefined | InRanges]
      ? 'many'
      : T extends 'each'
        ? 'one'
        : OfKinds<KindOf<Down>, KindOf<Up>>

type OfKinds<Down, Up> = unknown extends Down | Up
  ? 'unknown'
  : Up extends AnyDimensions
    ? Down extends AnyDimensions
      ? // A dimension that only the upstream has is taken whole.
        keyof Up extends keyof Down
        ? Most<{ [Name in keyof Up]: OfNamesakes<Down[Name & keyof Down], Up[Name]> }[keyof Up]>
        : 'many'
      : 'many'
    : Down extends AnyDimensions
      ? Most<{ [Name in keyof Down]: OfTime<Down[Name], Up> }[keyof Down]>
      : OfTime<Down, Up>

type Listed = 'keys' | 'dynamic'

/** Dimensions of one name that are of different kinds have only the name in common. */
type OfNamesakes<Down, Up> = Down extends Listed
  ? Up extends Down
    ? 'one'
    : 'many'
  : Up extends Listed
    ? 'many'
    : OfWindows<Down, Up>

type OfTime<Down, Up> = Down extends Listed ? 'one' : Up extends Listed ? 'one' : OfWindows<Down, Up>

type Most<Counts> = 'many' extends Counts ? 'many' : 'unknown' extends Counts ? 'unknown' : 'one'

/** From the shortest to the longest. */
type Units = [
  ...['1m', '2m', '3m', '4m', '5m', '6m', '10m', '12m', '15m', '20m', '30m'],
  ...['hourly', 'daily', 'weekly', 'monthly', 'quarterly', 'yearly'],
]

type Shorter<Unit, In extends readonly unknown[] = Units> = In extends readonly [infer First, ...infer Rest]
  ? First extends Unit
    ? never
    : First | Shorter<Unit, Rest>
  : never

type OfWindows<Down, Up> = [Down, Up] extends [Up, Down]
  ? 'one'
  : [Down, Up] extends [Units[number], Units[number]]
    ? Up extends Shorter<Down>
      ? 'many'
      : // A week may begin in one month and end in another.
        Down extends 'weekly'
        ? 'many'
        : 'one'
    : 'unknown'
