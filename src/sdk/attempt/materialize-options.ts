import type { AnyAsset, InputsOf, PartitionsOf, ValueOf } from '../any-asset.ts'
import type { InputValue, InRanges } from '../declare/input-value.ts'
import type { DataTable, ReturnedRows } from '../declare/values.ts'
import type { Mistake } from '../mistake.ts'
import type { Own } from '../partitions/mapped.ts'
import type { KeyOf } from '../partitions/partitions.ts'

/** What `materialize` needs to know: the partition of a partitioned asset, and the inputs of an asset that has any. */
export type MaterializeOptions<A> = PartitionGiven<PartitionsOf<A>> & InputsGiven<InputsOf<A>, PartitionsOf<A>> & Replaced

interface Replaced {
  /** Replaces resources for the body. Other resources are opened with the settings of the environment. */
  resources?: Readonly<Record<string, unknown>>
}

type PartitionGiven<P> = unknown extends P
  ? { partition?: unknown }
  : [P] extends [undefined]
    ? { partition?: Mistake<'this asset has no partitions'> }
    : {
        /** The key of the partition to make. An asset that is made in ranges takes a list of keys. */
        partition: P extends InRanges ? readonly KeyOf<P>[] : KeyOf<P>
      }

type InputsGiven<Inputs, P> = unknown extends Inputs
  ? { inputs?: Readonly<Record<string, unknown>> }
  : [Needed<Inputs>] extends [never]
    ? { inputs?: Values<Inputs, P> }
    : {
        /**
         * The inputs, by the names that the body uses: rows for a table, a value for any other asset, and a Map of values for several
         * partitions of it. Leave out `previous` for the first partition.
         */
        inputs: Values<Inputs, P>
      }

/** An asset may have no past, so `previous` may be left out. */
type Needed<Inputs> = { [Name in keyof Inputs]: Inputs[Name] extends Own<unknown> ? never : Name }[keyof Inputs]

type Values<Inputs, P> = { readonly [Name in Needed<Inputs>]: Value<Inputs[Name], P> } & {
  readonly [Name in Exclude<keyof Inputs, Needed<Inputs>>]?: unknown
}

type Value<Input, P> = ValueOf<Input> extends DataTable<infer Row> ? ReturnedRows<Row> : OrObject<InputValue<Input, P>>

/** Keys of a Map are texts in most tests, so that an object is as good. */
type OrObject<V> = V extends ReadonlyMap<infer Key, infer Each> ? V | { readonly [K in Key & string]?: Each } : V

/** An asset that `materialize` can run without any options; otherwise the options it needs, for the compiler's message. */
export type Alone<A extends AnyAsset> =
  unknown extends PartitionsOf<A>
    ? A
    : [PartitionsOf<A>] extends [undefined]
      ? [Needed<InputsOf<A>>] extends [never]
        ? A
        : Mistake<'this asset has inputs: write materialize(asset, { inputs: { … } })'>
      : [Needed<InputsOf<A>>] extends [never]
        ? Mistake<'this asset has partitions: write materialize(asset, { partition: … })'>
        : Mistake<'this asset has partitions and inputs: write materialize(asset, { partition: …, inputs: { … } })'>
