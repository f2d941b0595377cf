/** The public API of the package: everything that projects import. */
export { type ErrorKind, isServoError, type ServoError } from './lib/error.ts'
export type { AnyAsset, NoValue, PartitionsOf, ValueOf } from './sdk/any-asset.ts'
export type { Alert } from './sdk/declare/alerts/alert.ts'
export { type Asset, asset, command, type Kept, source, table } from './sdk/declare/asset.ts'
export type {
  Arguments,
  AssetOptions,
  BodySettings,
  CommandOptions,
  CommandSettings,
  Dependency,
  Freshness,
  Loadable,
  Nothing,
  Retry,
  RetryOptions,
  Returnable,
  RowsFile,
  Settings,
  SourceOptions,
  TableOptions,
  Word,
} from './sdk/declare/asset-options.ts'
export { type Check, type CheckFunction, type CheckResult, type Checks, check, type WarningCheck } from './sdk/declare/check.ts'
export {
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
} from './sdk/declare/config.ts'
export type { Context, Json, Log, PartitionOf } from './sdk/declare/context.ts'
export { Fatal, RetryAfter } from './sdk/declare/failure.ts'
export type { DimensionOf, InputValue, InRanges, KeyAlong } from './sdk/declare/input-value.ts'
export { type Io, type IoOptions, io } from './sdk/declare/io.ts'
export type { Keep } from './sdk/declare/keep.ts'
export { type PubsubOptions, type PushSource, pubsub, type WebhookOptions, webhook } from './sdk/declare/push-source.ts'
export { type AnyResource, type Opened, type Resource, type ResourceOptions, resource } from './sdk/declare/resource.ts'
export { type Sensor, sensor } from './sdk/declare/sensor.ts'
export type {
  AssetEvent,
  AssetHappening,
  AssetSensorOptions,
  KeysFound,
  MessageContext,
  PollOptions,
  PushOptions,
  Requested,
  RunEndEvent,
  RunSensorOptions,
  SensorContext,
  SensorSettings,
  ToldSettings,
  WatchedRunState,
  WithId,
} from './sdk/declare/sensor-options.ts'
export { type Query, type SqlValue, sql } from './sdk/declare/sql.ts'
export {
  type Catchup,
  type RunArguments,
  type RunRequest,
  type RunSettings,
  run,
  type Schedule,
  type ScheduleOptions,
  type Selection,
  schedule,
  type TickToJudge,
} from './sdk/declare/trigger.ts'
export type { DataTable, MaybePromise, ReturnedRows } from './sdk/declare/values.ts'
export { type Condition, type ConditionData, when } from './sdk/declare/when.ts'
export type { Duration } from './sdk/duration.ts'
export type { ChangeKeys, KeysOfSet } from './sdk/partitions/key-changes.ts'
export { type Mapped, type MappingData, type Own, previous, type Takes, type Upstream } from './sdk/partitions/mapped.ts'
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
} from './sdk/partitions/partitions.ts'
export { type Ranges, type RangesData, ranges } from './sdk/partitions/ranges.ts'
export type { SchemaIssue, SchemaResult, StandardSchemaV1 } from './sdk/standard-schema.ts'
