import type { carries, NoValue, ValueOf } from '../any-asset.ts'
import type { Duration } from '../duration.ts'
import type { Mistake } from '../mistake.ts'
import type { Own, Upstream } from '../partitions/mapped.ts'
import type { AnyPartitions, KeyOf } from '../partitions/partitions.ts'
import type { StandardSchemaV1 } from '../standard-schema.ts'
import type { Checks } from './check.ts'
import type { Context, PartitionOf } from './context.ts'
import type { InputValue, InRanges } from './input-value.ts'
import type { Io } from './io.ts'
import type { AnyResource } from './resource.ts'
import type { Query } from './sql.ts'
import type { DataTable, MaybePromise, ReturnedRows } from './values.ts'
import type { Condition } from './when.ts'

/** Nothing asked for. */
export type Nothing = Record<never, never>

export interface RetryOptions {
  /** The number of attempts, including the first. */
  attempts: number
  backoff?: 'fixed' | 'exponential'
  initial?: Duration
  max?: Duration
  jitter?: boolean
  /** Returns whether to try again after this error. It runs in the worker. */
  on?: (error: unknown) => boolean
}

/** The number of attempts, or how to go about them. */
export type Retry = number | RetryOptions

/** How old it may get, or the time of day by which it must be new. */
export type Freshness = { within: Duration; warn?: Duration } | { by: string; timezone?: string }

/** A dependency that is not loaded: an asset, some partitions of one, its own past, or the key of an asset in another project. */
export type Dependency = Upstream | string

export interface Settings<P> {
  description?: string
  group?: string
  tags?: Readonly<Record<string, string>>
  owners?: readonly string[]
  /** The technology, such as `python` or `duckdb`. */
  kinds?: readonly string[]
  partitions?: P & Partitioned<P>
  deps?: readonly Dependency[]
  /** Not available yet: a project that declares it is refused. */
  automation?: Condition
  freshness?: Freshness
  retry?: Retry
  timeout?: Duration
  /** For an asset of a queue: how long its worker may be silent before its attempt is given up. A minute by default. */
  heartbeatTimeout?: Duration
  /** The pool of servo.config.ts whose limit its attempts share with others. */
  pool?: string
  /** The queue whose workers make it; the workers of this machine if absent. */
  queue?: string
  /** A higher number goes first; from -1000 to 1000, 0 by default. */
  priority?: number
  /**
   * While another run is making the same partition: `queue` lets its task wait, `skip` skips it and what is made from it in the same run,
   * `replace` cancels the run that was asked for first. By default they run side by side.
   */
  overlap?: 'queue' | 'skip' | 'replace'
  /** Not available yet: it is refused. */
  backfill?: { chunk: number }
  /** The version of its code, instead of a hash of its file and what that imports. */
  version?: string
  /**
   * True: whatever is made from it is stale whenever it was made again. By default, not if its data has the version that was read
   * before. Say so if that version does not cover all that others read, such as data that the body keeps elsewhere.
   */
  alwaysNew?: boolean
  /** Its former key, so that its history stays with it. */
  renamedFrom?: string
}

/** The common options of assets with a body. `Kept` is the type of its own past values, if the compiler can infer it. */
export interface BodySettings<Inputs, P, Resources, Metadata, Kept = unknown> extends Settings<P> {
  inputs?: Inputs & Loadable<Inputs, P, Kept>
  resources?: Resources & Named<Resources>
  metadata?: StandardSchemaV1<unknown, Metadata>
}

type Partitioned<P> = [P] extends [AnyPartitions | undefined]
  ? unknown
  : Mistake<"these are not partitions: write daily({ start: '2025-01-01' }) or keys(['eu', 'us'])">

/** Resources by the names that the body uses. */
export type Named<Resources> = Resources extends readonly unknown[]
  ? { readonly 'give each resource a name: resources: { shop }': never }
  : Readonly<Record<string, AnyResource>>

/** The type of an input contains the reason why it cannot be loaded, so that the compiler prints it. */
export type Loadable<Inputs, P = unknown, Kept = unknown> = Inputs extends readonly unknown[]
  ? Mistake<'give each input a name: inputs: { orders }'>
  : LoadableByName<Inputs, P, Kept>

type LoadableByName<Inputs, P, Kept> = {
  [Name in keyof Inputs]: Name extends keyof Context<unknown, unknown, unknown>
    ? `${Name} is a name of Servo's own: choose another`
    : Inputs[Name] extends Own<infer Value>
      ? unknown extends Value & Kept
        ? 'write the type of the value: previous<number>()'
        : Inputs[Name]
      : Inputs[Name] extends string
        ? 'this is text: import the asset and write it without quotes'
        : ValueOf<Inputs[Name]> extends NoValue
          ? 'this asset keeps its own data, so there is no value to load: list it in `deps`'
          : DownOf<Inputs[Name]> extends KeyText<P>
            ? Inputs[Name]
            : `${DownOf<Inputs[Name]>} is not a partition of this asset`
}

/** The return type of a body: anything, unless it takes its own past value, or makes a range and keeps its own data. */
// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Returnable<Inputs, P> = P extends InRanges ? void : [OwnOf<Inputs>] extends [never] ? unknown : OwnOf<Inputs>
type OwnOf<Inputs> = Inputs extends readonly unknown[]
  ? never
  : { [Name in keyof Inputs]: Inputs[Name] extends Own<infer Value> ? Value : never }[keyof Inputs]

type DownOf<Input> = Input extends { readonly [carries]?: { readonly down: infer Down extends string } } ? Down : never
/** A key as text: of several dimensions it is written out. */
type KeyText<P> = KeyOf<P> extends string ? KeyOf<P> : string

/** The arguments of a body. `Rows` is the table it makes itself, if it makes one. */
export type Arguments<Inputs, P, Resources, Metadata, Rows = never> = {
  readonly [Name in keyof Inputs]: Inputs[Name] extends Own<unknown>
    ? [Rows] extends [never]
      ? InputValue<Inputs[Name], P>
      : Rows | undefined
    : InputValue<Inputs[Name], P>
} & Context<P, Resources, Metadata>

export interface AssetOptions<Value, Inputs, P, Resources, Metadata> extends BodySettings<Inputs, P, Resources, Metadata> {
  run(args: Arguments<Inputs, P, Resources, Metadata>): MaybePromise<Value>
  /** Write them after `run`, from which the compiler learns what they check. */
  checks?: Checks<NoInfer<Value>>
  io?: Io<NoInfer<Value>>
}

export type TableOptions<Row, Inputs, P, Resources, Metadata> = BodySettings<
  Inputs,
  P,
  Resources,
  Metadata,
  DataTable<unknown>
> &
  Rows<Row> &
  (
    | WithBody<Row, Arguments<Inputs, P, Resources, Metadata, DataTable<NoInfer<Row>>>>
    | WithQuery<Arguments<Inputs, P, Resources, Metadata, DataTable<NoInfer<Row>>>>
  )

interface Rows<Row> {
  /** The columns, and the check of each row. */
  schema: StandardSchemaV1<unknown, Row>
  checks?: Checks<DataTable<NoInfer<Row>>>
}

interface WithBody<Row, Args> {
  run(args: Args): MaybePromise<ReturnedRows<NoInfer<Row>>>
  sql?: Mistake<'a table has run or sql, not both'>
}

interface WithQuery<Args> {
  /** Inputs that are tables can be named in the query, too. */
  sql(args: Args): MaybePromise<Query>
  run?: Mistake<'a table has run or sql, not both'>
}

/** Its name is what the compiler prints. */
interface ThisCommandHasNoPartitions {
  readonly key: never
}

/** A word of a command line, or how to make it from the partition. */
export type Word<P> =
  | string
  | ((partition: [P] extends [undefined] ? { readonly key: ThisCommandHasNoPartitions } : PartitionOf<P>) => string)

export interface CommandOptions<P> extends Settings<P> {
  run: readonly Word<P>[]
  /** Relative to the project folder. */
  cwd?: string
  env?: Readonly<Record<string, string>>
  /**
   * Further files that belong to its code: paths, folders or globs, relative to the project folder. Files of the project that `run` names
   * belong to it anyway.
   */
  files?: readonly string[]
  /** True if the program uses Dagster Pipes. */
  pipes?: boolean
}

export interface SourceOptions<Row, P> {
  schema: StandardSchemaV1<unknown, Row>
  /** Where its Parquet files are; `{key}` stands for the partition, or `{day}` for a dimension. */
  uri: string
  description?: string
  group?: string
  tags?: Readonly<Record<string, string>>
  owners?: readonly string[]
  kinds?: readonly string[]
  partitions?: P & Partitioned<P>
  freshness?: Freshness
  renamedFrom?: string
}
