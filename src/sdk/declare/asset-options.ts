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
import type { Keep } from './keep.ts'
import type { AnyResource } from './resource.ts'
import type { Query } from './sql.ts'
import type { DataTable, MaybePromise, ReturnedRows } from './values.ts'
import type { Condition } from './when.ts'

/** No inputs, or no resources. */
export type Nothing = Record<never, never>

export interface RetryOptions {
  /** The number of attempts, including the first. */
  attempts: number
  backoff?: 'fixed' | 'exponential'
  initial?: Duration
  max?: Duration
  jitter?: boolean
  /** Returns true to try again after this error. Runs in the worker. */
  on?: (error: unknown) => boolean
}

/** The number of attempts, or a retry policy. */
export type Retry = number | RetryOptions

/** The maximum age of a materialization, or the time of day by which there must be a new one. */
export type Freshness = { within: Duration; warn?: Duration } | { by: string; timezone?: string }

/** A dependency that Servo does not load: an asset, some of its partitions, `previous()`, or the key of an asset in another project. */
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
  /** Not available yet: Servo refuses projects that use it. */
  automation?: Condition
  freshness?: Freshness
  retry?: Retry
  timeout?: Duration
  /** With a `queue`: how long the worker may send no heartbeat before Servo gives up the attempt. Default: one minute. */
  heartbeatTimeout?: Duration
  /** A pool of servo.config.ts: its limit applies to the attempts of all assets in it. */
  pool?: string
  /** The queue whose workers run it. Default: the local workers. */
  queue?: string
  /** A higher number runs first; from -1000 to 1000, default 0. */
  priority?: number
  /**
   * What a task does while another run materializes the same partition: `queue` waits, `skip` skips the task and everything downstream of it
   * in the run, `replace` cancels the earlier run. By default both run at the same time.
   */
  overlap?: 'queue' | 'skip' | 'replace'
  /** How many partitions each run of a backfill makes, up to 10,000. Default: 10. */
  backfill?: { chunk: number }
  /** Which of its stored values are kept: `{ versions: 3 }`, `{ days: 30 }`, both, or `'all'`. Default: what the config says, or all. */
  keep?: Keep | 'all'
  /** The code version. Default: a hash of the file and its imports. */
  version?: string
  /**
   * True: every new materialization makes downstream assets stale. By default, a materialization with the same data version does not.
   * Set it if the data version does not cover everything that downstream assets read, such as data that the body stores elsewhere.
   */
  alwaysNew?: boolean
  /** The former key, so that the asset keeps its history. */
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
          ? 'this asset stores its own data, so there is no value to load: list it in `deps`'
          : DownOf<Inputs[Name]> extends KeyText<P>
            ? Inputs[Name]
            : `${DownOf<Inputs[Name]>} is not a partition of this asset`
}

/**
 * The return type of a body: anything, unless it takes its own past value, or makes a range and keeps its own data. `P` is never while the
 * compiler has not inferred it; a value must fit even then, or `check.warn` does not learn its type.
 */
export type Returnable<Inputs, P> = [P] extends [never] ? unknown : ReturnableOf<Inputs, P>
// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
type ReturnableOf<Inputs, P> = P extends InRanges ? void : [OwnOf<Inputs>] extends [never] ? unknown : OwnOf<Inputs>
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
  /** Write `checks` after `run`: the compiler infers the type of the value from `run`. */
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
  /** The query can name input tables directly, too. */
  sql(args: Args): MaybePromise<Query>
  run?: Mistake<'a table has run or sql, not both'>
}

/** Its name is what the compiler prints. */
interface ThisCommandHasNoPartitions {
  readonly key: never
}

/** A word of a command line, or a function that builds it from the partition. */
export type Word<P> =
  | string
  | ((partition: [P] extends [undefined] ? { readonly key: ThisCommandHasNoPartitions } : PartitionOf<P>) => string)

export interface CommandSettings<Inputs, P> extends Settings<P> {
  run: readonly Word<P>[]
  /** Stored values of other assets. The program gets the paths of their files: in `SERVO_INPUT_<NAME>`, and in `extras.inputs` of Pipes. */
  inputs?: Inputs & Loadable<Inputs, P, DataTable<unknown>>
  /** Relative to the project folder. */
  cwd?: string
  env?: Readonly<Record<string, string>>
  /**
   * Further files that count as its code: paths, folders or globs, relative to the project folder. Project files that `run` names always
   * count.
   */
  files?: readonly string[]
  /** True if the program uses Dagster Pipes. */
  pipes?: boolean
}

/** The file in which a program returns rows. Its ending is its format. */
export type RowsFile = `${string}.parquet` | `${string}.csv` | `${string}.ndjson`

/** A program stores its own data, or writes rows into a file of its output folder, `SERVO_OUTPUT`. */
export type CommandOptions<P, Inputs = Nothing, Row = never> = CommandSettings<Inputs, P> &
  (
    | { output: RowsFile; schema: StandardSchemaV1<unknown, Row>; checks?: Checks<DataTable<NoInfer<Row>>> }
    | {
        output?: never
        schema?: Mistake<"rows need a file that the program writes: add output: 'rows.csv'">
        checks?: Mistake<"checks need rows: add output: 'rows.csv' and a schema, or report checks over Pipes">
      }
  )

export interface SourceOptions<Row, P> {
  schema: StandardSchemaV1<unknown, Row>
  /** Where the Parquet files are. `{key}` is replaced by the partition key, `{day}` by the value of that dimension. */
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
