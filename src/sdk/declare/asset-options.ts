import type { carries, NoValue, ValueOf } from '../any-asset.ts'
import type { Duration } from '../duration.ts'
import type { Own, Upstream } from '../partitions/mapped.ts'
import type { KeyOf } from '../partitions/partitions.ts'
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
  partitions?: P
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
  resources?: Resources & Readonly<Record<string, AnyResource>>
  metadata?: StandardSchemaV1<unknown, Metadata>
}

/** The type of an input contains the reason why it cannot be loaded, so that the compiler prints it. */
export type Loadable<Inputs, P = unknown, Kept = unknown> = {
  [Name in keyof Inputs]: Name extends keyof Context<unknown, unknown, unknown>
    ? 'the body gets something else by this name: choose another'
    : Inputs[Name] extends Own<infer Value>
      ? unknown extends Value & Kept
        ? 'say what the value is: previous<number>()'
        : Inputs[Name]
      : ValueOf<Inputs[Name]> extends NoValue
        ? 'this asset keeps its own data: list it in `deps`'
        : DownOf<Inputs[Name]> extends KeyText<P>
          ? Inputs[Name]
          : 'this maps a key that is not a partition of the asset'
}

/** The return type of a body: anything, unless it takes its own past value, or makes a range and keeps its own data. */
// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Returnable<Inputs, P> = P extends InRanges ? void : [OwnOf<Inputs>] extends [never] ? unknown : OwnOf<Inputs>
type OwnOf<Inputs> = { [Name in keyof Inputs]: Inputs[Name] extends Own<infer Value> ? Value : never }[keyof Inputs]

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
> & {
  schema: StandardSchemaV1<unknown, Row>
  checks?: Checks<DataTable<NoInfer<Row>>>
} & (
    | {
        run(args: Arguments<Inputs, P, Resources, Metadata, DataTable<NoInfer<Row>>>): MaybePromise<ReturnedRows<NoInfer<Row>>>
        sql?: never
      }
    /** Inputs that are tables can be named in the query, too. */
    | { sql(args: Arguments<Inputs, P, Resources, Metadata, DataTable<NoInfer<Row>>>): MaybePromise<Query>; run?: never }
  )

/** A word of a command line, or how to make it from the partition. */
export type Word<P> = string | ((partition: [P] extends [undefined] ? { readonly key: never } : PartitionOf<P>) => string)

export interface CommandSettings<Inputs, P> extends Settings<P> {
  run: readonly Word<P>[]
  /** Stored values of other assets. The program gets the paths of their files: in `SERVO_INPUT_<NAME>`, and in `extras.inputs` of Pipes. */
  inputs?: Inputs & Loadable<Inputs, P, DataTable<unknown>>
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

/** The file by which a program hands rows back. Its ending is its format. */
export type RowsFile = `${string}.parquet` | `${string}.csv` | `${string}.ndjson`

/** A program keeps its own data, or writes rows into a file of its output folder, `SERVO_OUTPUT`. */
export type CommandOptions<P, Inputs = Nothing, Row = never> = CommandSettings<Inputs, P> &
  (
    | { output: RowsFile; schema: StandardSchemaV1<unknown, Row>; checks?: Checks<DataTable<NoInfer<Row>>> }
    | { output?: never; schema?: never; checks?: never }
  )

export interface SourceOptions<Row, P> {
  schema: StandardSchemaV1<unknown, Row>
  /** Where its Parquet files are; `{key}` stands for the partition, or `{day}` for a dimension. */
  uri: string
  description?: string
  group?: string
  tags?: Readonly<Record<string, string>>
  owners?: readonly string[]
  kinds?: readonly string[]
  partitions?: P
  freshness?: Freshness
  renamedFrom?: string
}
