/** What users of the package import. */
export { type ErrorKind, isServoError, type ServoError } from './lib/error.ts'
export type { AnyAsset, NoValue, PartitionsOf, ValueOf } from './sdk/any-asset.ts'
export { type Asset, asset, command, type Kept, source, table } from './sdk/asset.ts'
export type {
  Arguments,
  AssetOptions,
  BodySettings,
  CommandOptions,
  Dependency,
  Freshness,
  Loadable,
  Nothing,
  Retry,
  RetryOptions,
  Returnable,
  Settings,
  SourceOptions,
  TableOptions,
  Word,
} from './sdk/asset-options.ts'
export type { Context, Json, Log, PartitionOf } from './sdk/attempt/context.ts'
export { Fatal, RetryAfter } from './sdk/attempt/failure.ts'
export type { DimensionOf, InputValue, InRanges, KeyAlong } from './sdk/attempt/input-value.ts'
export type { ChangeKeys, KeysOfSet } from './sdk/attempt/key-changes.ts'
export type { DataTable, MaybePromise, ReturnedRows } from './sdk/attempt/values.ts'
export { type Check, type CheckFunction, type CheckResult, type Checks, check } from './sdk/check.ts'
export {
  type Alert,
  type CloudTasksOptions,
  type Config,
  cloudTasks,
  defineConfig,
  type Environment,
  gcs,
  inProcess,
  local,
  postgres,
  type QueueConfig,
  type StorageConfig,
  s3,
} from './sdk/config.ts'
export type { Duration } from './sdk/duration.ts'
export { type Io, type IoOptions, io } from './sdk/io.ts'
export { type Mapped, type MappingData, type Own, previous, type Takes, type Upstream } from './sdk/mapped.ts'
export {
  type AnyPartitions,
  cronWindows,
  type DayKey,
  type DynamicPartitions,
  daily,
  dynamic,
  type HourKey,
  hourly,
  type KeyOf,
  type KindOf,
  keys,
  type MinuteKey,
  type MonthKey,
  minutely,
  monthly,
  multi,
  type PartitionData,
  type Partitions,
  quarterly,
  type SpanOf,
  type TimeOptions,
  type Window,
  weekly,
  type YearKey,
  yearly,
} from './sdk/partitions.ts'
export { type Ranges, type RangesData, ranges } from './sdk/ranges.ts'
export { type AnyResource, type Opened, type Resource, type ResourceOptions, resource } from './sdk/resource.ts'
export {
  type KeysFound,
  type PollOptions,
  type PubsubOptions,
  type PushOptions,
  type PushSource,
  pubsub,
  type Requested,
  type Sensor,
  sensor,
  type WebhookOptions,
  webhook,
} from './sdk/sensor.ts'
export { type Query, type SqlValue, sql } from './sdk/sql.ts'
export type { SchemaIssue, SchemaResult, StandardSchemaV1 } from './sdk/standard-schema.ts'
export {
  type RunArguments,
  type RunRequest,
  run,
  type Schedule,
  type ScheduleOptions,
  type Selection,
  schedule,
} from './sdk/trigger.ts'
export { type Condition, type ConditionData, when } from './sdk/when.ts'
