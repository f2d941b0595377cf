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

/** Keys of dynamic sets that come and go with an evaluation: if another was faster and it does not count, they do not either. */
export interface KeysFound {
  add?: KeysOfSet | readonly KeysOfSet[]
  remove?: KeysOfSet | readonly KeysOfSet[]
}

export type Requested = RunRequest | readonly RunRequest[] | ({ runs: readonly RunRequest[] } & KeysFound) | undefined

/** What all sensors take. */
export interface SensorSettings<Resources> {
  description?: string
  /** How long its code may take; 30 s unless told. */
  timeout?: Duration
  /** What it may run; anything unless told. */
  select?: Selection
  resources?: Resources & Named<Resources>
  /** The name it had before: it keeps its history. */
  renamedFrom?: string
  /** False turns it off. */
  enabled?: boolean
}

/** What sensors take that are told of something. */
export interface ToldSettings<Resources> extends SensorSettings<Resources> {
  /** After so many failed tries an event is a dead letter; 5 unless told. */
  maxTries?: number
}

/** What comes with an event. */
export interface SensorContext<Resources> {
  /** Identifies the event: hand it on as the key of a run, and an event that comes twice runs once. */
  readonly id: string
  readonly resources: Opened<Resources>
  /** Fires when the evaluation takes too long, or when Servo stops. */
  readonly signal: AbortSignal
}

export interface MessageContext<Resources> extends SensorContext<Resources> {
  /** What came with the message: attributes of Pub/Sub or of a CloudEvent, or the event header of GitHub. */
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
  /** Least time between two polls, also after an error, a resume or a start. */
  minInterval?: Duration
  cursor: StandardSchemaV1<unknown, Cursor>
  /** `cursor` is undefined the first time. Without a cursor in the result it stays as it is. */
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
  /** Undefined when it was not made by a run. */
  readonly runId: string | undefined
  readonly at: Date
}

/** Something that happened to an asset. */
export type AssetEvent<Happening extends AssetHappening = AssetHappening, Watched = string> = {
  materialized: AssetEventOf<'materialized', Watched>
  /** `checks` are the names of those that failed. */
  check_failed: AssetEventOf<'check_failed', Watched> & { readonly checks: readonly string[] }
}[Happening]

export interface AssetSensorOptions<Watched, Happening extends AssetHappening, Resources> extends ToldSettings<Resources> {
  /** The assets, or keys of assets, that it watches. */
  watch: Watched | readonly Watched[]
  /** What of them; that they were made unless told. */
  happenings?: readonly Happening[]
  on(event: AssetEvent<NoInfer<Happening>, NoInfer<Watched>>, context: SensorContext<Resources>): Handled
}

export type AnyWatched = AnyAsset | string

export type WatchedRunState = (typeof watchedRunStates)[number]

/** The end of a run. */
export interface RunEndEvent<State extends WatchedRunState = WatchedRunState> {
  readonly runId: string
  readonly state: State
  /** What was asked for. */
  readonly assets: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly at: Date
}

export interface RunSensorOptions<State extends WatchedRunState, Resources> extends ToldSettings<Resources> {
  /** How the runs ended. */
  states: readonly State[]
  /** Only runs with one of these assets; every run unless told. */
  watch?: Selection
  on(event: RunEndEvent<NoInfer<State>>, context: SensorContext<Resources>): Handled
}
