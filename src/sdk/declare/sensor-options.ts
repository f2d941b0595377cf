import type { assetHappenings, watchedRunStates } from '../../contract/sensor.ts'
import type { AnyAsset, PartitionsOf } from '../any-asset.ts'
import type { Duration } from '../duration.ts'
import type { KeysOfSet } from '../partitions/key-changes.ts'
import type { KeyOf } from '../partitions/partitions.ts'
import type { StandardSchemaV1 } from '../standard-schema.ts'
import type { Named } from './asset-options.ts'
import type { PushSource } from './push-source.ts'
import type { Opened } from './resource.ts'
import type { RunRequest, Selection } from './trigger.ts'
import type { MaybePromise } from './values.ts'

/** Keys of dynamic sets to add and remove. They count only if the evaluation does: of two polls from one cursor, the first counts. */
export interface KeysFound {
  add?: KeysOfSet | readonly KeysOfSet[]
  remove?: KeysOfSet | readonly KeysOfSet[]
}

export type Requested = RunRequest | readonly RunRequest[] | ({ runs: readonly RunRequest[] } & KeysFound) | undefined

/** The options of every sensor. */
export interface SensorSettings<Resources> {
  description?: string
  /** How long its code may take. Default: 30 seconds. */
  timeout?: Duration
  /** The assets that it may run. Default: all. */
  select?: Selection
  resources?: Resources & Named<Resources>
  /** The former name, so that it keeps its history. */
  renamedFrom?: string
  /** False turns it off. Default: true. */
  enabled?: boolean
}

/** The options of sensors that handle events. */
export interface ToldSettings<Resources> extends SensorSettings<Resources> {
  /** How many failed tries make an event a dead letter. Default: 5. */
  maxTries?: number
}

/** The second argument of a handler. */
export interface SensorContext<Resources> {
  /** The id of the event. Use it as the key of a run: an event that arrives twice then runs once. */
  readonly id: string
  readonly resources: Opened<Resources>
  /** Fires when the evaluation takes too long, or when Servo stops. */
  readonly signal: AbortSignal
}

export interface MessageContext<Resources> extends SensorContext<Resources> {
  /** Attributes of the message: those of Pub/Sub or of a CloudEvent, or the event header of GitHub. */
  readonly attributes: Readonly<Record<string, string>>
  /** When the sender published it, if it says so. */
  readonly publishedAt: Date | undefined
}

/** An event with the id of its message; its own `id`, if it has one, is not replaced. */
export type WithId<Event> = Event extends readonly unknown[]
  ? Event
  : Event extends object
    ? Event extends { readonly id: unknown }
      ? Event
      : Event & { readonly id: string }
    : Event

// biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
type Handled = MaybePromise<Requested | void>

export interface PushOptions<Event, Resources> extends ToldSettings<Resources> {
  source: PushSource<Event>
  on(event: WithId<NoInfer<Event>>, context: MessageContext<Resources>): Handled
}

export interface PollOptions<Cursor, Resources> extends SensorSettings<Resources> {
  every: Duration
  /** The minimum time between two polls, also after an error, a resume or a start. */
  minInterval?: Duration
  cursor: StandardSchemaV1<unknown, Cursor>
  /** `cursor` is undefined at the first poll. A result without `cursor` keeps the old one. */
  poll(args: {
    readonly cursor: NoInfer<Cursor> | undefined
    readonly resources: Opened<Resources>
    readonly signal: AbortSignal
  }): MaybePromise<{ cursor?: NoInfer<Cursor>; runs: readonly RunRequest[] } & KeysFound>
}

export type AssetHappening = (typeof assetHappenings)[number]

/** The partition of an asset as its own code knows it; text if only the key of the asset is given. */
type PartitionOfWatched<Watched> = Watched extends string
  ? string | undefined
  : unknown extends PartitionsOf<Watched>
    ? unknown
    : [PartitionsOf<Watched>] extends [undefined]
      ? undefined
      : KeyOf<PartitionsOf<Watched>>

interface AssetEventOf<Type, Watched> {
  readonly type: Type
  readonly asset: string
  readonly partition: PartitionOfWatched<Watched>
  /** Undefined if no run materialized it. */
  readonly runId: string | undefined
  readonly at: Date
}

/** Something that happened to an asset. */
export type AssetEvent<Happening extends AssetHappening = AssetHappening, Watched = string> = {
  materialized: AssetEventOf<'materialized', Watched>
  /** `checks` are the names of the failed checks. */
  check_failed: AssetEventOf<'check_failed', Watched> & { readonly checks: readonly string[] }
}[Happening]

export interface AssetSensorOptions<Watched, Happening extends AssetHappening, Resources> extends ToldSettings<Resources> {
  /** The assets, or asset keys, to watch. */
  watch: Watched | readonly Watched[]
  /** The events to handle. Default: `materialized`. */
  happenings?: readonly Happening[]
  on(event: AssetEvent<NoInfer<Happening>, NoInfer<Watched>>, context: SensorContext<Resources>): Handled
}

export type AnyWatched = AnyAsset | string

export type WatchedRunState = (typeof watchedRunStates)[number]

/** The end of a run. */
export interface RunEndEvent<State extends WatchedRunState = WatchedRunState> {
  readonly runId: string
  readonly state: State
  /** The assets that the run was requested for. */
  readonly assets: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly at: Date
}

export interface RunSensorOptions<State extends WatchedRunState, Resources> extends ToldSettings<Resources> {
  /** The final states to handle. */
  states: readonly State[]
  /** Only runs with one of these assets. Default: every run. */
  watch?: Selection
  on(event: RunEndEvent<NoInfer<State>>, context: SensorContext<Resources>): Handled
}
