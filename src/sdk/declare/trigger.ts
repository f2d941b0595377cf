import { overlapPolicies } from '../../contract/overlap-policies.ts'
import { isObject } from '../../lib/is-object.ts'
import { type AnyAsset, isAsset, type PartitionsOf } from '../any-asset.ts'
import { callerOf } from '../caller.ts'
import { optionsOf, withDeclaration } from '../declaration.ts'
import { type Duration, durationMs, durationWithin, evaluationBounds } from '../duration.ts'
import { checkedAssetKey, checkedName, invalid, show } from '../invalid.ts'
import type { Mistake } from '../mistake.ts'
import { checkOptionNames } from '../option-names.ts'
import { type PartitionText, partitionText } from '../partitions/partition-key.ts'
import type { AnyPartitions, KeyOf } from '../partitions/partitions.ts'
import { issuesText } from '../standard-schema.ts'
import { checkLabels, checkWholeNumber } from './option-checks.ts'
import type { MaybePromise } from './values.ts'
import { checkedCron } from './when.ts'

/** A request of a sensor. */
export interface RunRequest {
  readonly assetKey: string
  readonly partition?: PartitionText
  /** Names the request: of several requests with the same key, only the first creates a run. */
  readonly runKey?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly priority?: number
}

export interface RunSettings {
  /** Names the request: of several requests with the same key, only the first creates a run. */
  key?: string
  labels?: Readonly<Record<string, string>>
  /** Runs with a higher number start first. */
  priority?: number
}

export type RunArguments<P> = [P] extends [undefined]
  ? [options?: RunSettings & { partition?: Mistake<'this asset has no partitions'> }]
  : [options: RunSettings & { partition: KeyOf<P> }]

/** Requests a run of an asset, or of one partition of it. */
export function run<A extends AnyAsset>(asset: A, ...[options]: RunArguments<PartitionsOf<A>>): RunRequest
export function run(asset: Mistake<'this asset has partitions: write run(asset, { partition: … })'>): never
export function run(asset: AnyAsset | Mistake<string>, options?: RunSettings & { partition?: unknown }): RunRequest {
  if (!isAsset(asset))
    throw invalid('not_an_asset', `${show(asset)} is not an asset`, 'Import the asset and write run(orders).')
  const { partitions } = optionsOf<{ partitions?: AnyPartitions }>(asset)
  const { partition, key, labels, priority } = options ?? {}
  checkOptionNames(`run(${asset.key})`, options ?? {}, ['partition', 'key', 'labels', 'priority'])
  if (partitions === undefined && partition !== undefined)
    throw invalid('bad_partition', `${asset.key} has no partitions`, 'Remove `partition`.')
  const checked = partitions?.key.safeParse(partition)
  if (checked?.error !== undefined)
    throw invalid(
      'bad_partition',
      `${show(partition)} is not a partition of ${asset.key}: ${issuesText(checked.error.issues)}`,
      'Write run(orders, { partition }) with one of its partition keys.',
    )
  if (key !== undefined && (typeof key !== 'string' || key === '' || key.length > 1_000))
    throw invalid(
      'bad_run_key',
      `\`key\` of run(${asset.key}) cannot be ${show(key)}`,
      'Write a string of up to 1000 characters, such as the id of the event.',
    )
  checkLabels('bad_labels', `\`labels\` of run(${asset.key})`, labels)
  checkWholeNumber('bad_priority', `\`priority\` of run(${asset.key})`, priority, {
    ...{ least: -1_000, most: 1_000 },
    hint: 'Runs with a higher number start first.',
  })
  return {
    assetKey: asset.key,
    ...(partitions !== undefined && { partition: partitionText(partition) }),
    ...(key !== undefined && { runKey: key }),
    ...(labels !== undefined && { labels: { ...labels } }),
    ...(priority !== undefined && { priority }),
  }
}

/** The assets that a schedule runs, or keys of assets in other projects. */
export type Selection = AnyAsset | string | readonly (AnyAsset | string)[]

/** The argument of `when`. */
export interface TickToJudge {
  readonly scheduledFor: Date
  /** Fires when the condition takes too long, or when Servo stops. */
  readonly signal: AbortSignal
}

const scheduleOptions = [
  ...['cron', 'timezone', 'select', 'description', 'start', 'end', 'partitions', 'offset', 'catchup', 'overlap'],
  ...['labels', 'priority', 'pauseAfter', 'when', 'timeout', 'renamedFrom', 'enabled'],
]

export interface Catchup {
  /** How far back missed ticks count. */
  window?: Duration
  /** How many of them run at most. */
  max?: number
  /** True: ticks missed while the schedule was paused count, too. */
  onResume?: boolean
}

export interface ScheduleOptions {
  /** A cron expression, or several: the schedule ticks when any of them does. */
  cron: string | readonly string[]
  /** The time zone of the cron expressions. Default: UTC. */
  timezone?: string
  select: Selection
  description?: string
  /** The schedule ticks neither before `start` nor after `end`: times such as `2025-01-15T00:00:00Z`. */
  start?: string | Date
  end?: string | Date
  /** The partitions that each tick runs. Default: the window that just closed, or all keys of partitions without time. */
  partitions?: string | readonly string[]
  /** How many windows to go back from the one that just closed. Default: 0. */
  offset?: number
  /** Which ticks to catch up on that were missed while no server ran. */
  catchup?: Catchup
  /** What a tick does while a run of an earlier tick is unfinished. By default both run at the same time. */
  overlap?: 'queue' | 'skip' | 'replace'
  /** Labels and priority of its runs. */
  labels?: Readonly<Record<string, string>>
  priority?: number
  /** Pauses the schedule after this many failed runs in a row. */
  pauseAfter?: number
  /** Called at each tick. If it returns false, Servo skips the tick and records the reason. */
  when?(tick: TickToJudge): MaybePromise<boolean | { run: boolean; reason?: string }>
  /** How long `when` may take. Default: 30 seconds. */
  timeout?: Duration
  /** The former name, so that it keeps its history. */
  renamedFrom?: string
  /** False turns it off. Default: true. */
  enabled?: boolean
}

export interface Schedule {
  readonly name: string
}

export function schedule(name: string, options: ScheduleOptions): Schedule {
  checkedName(name, 'schedule')
  const { cron, timezone = 'UTC', select, catchup, labels } = options ?? {}
  checkOptionNames(`schedule ${name}`, options ?? {}, scheduleOptions)
  const expressions = Array.isArray(cron) ? cron : [cron]
  if (expressions.length === 0) checkedCron(undefined, timezone, `schedule ${name}`)
  for (const expression of expressions) checkedCron(expression, timezone, `schedule ${name}`)
  if (select === undefined)
    throw invalid(
      'bad_selection',
      `schedule ${name} needs \`select\``,
      'Write which assets it runs: select: [orders, revenue].',
    )
  if (selectedKeys(select, `schedule ${name}`).length === 0)
    throw invalid('bad_selection', `schedule ${name} has an empty \`select\``, 'Write select: [orders, revenue].')
  const whole = (option: string, value: unknown, least: number, most: number, hint: string): void =>
    checkWholeNumber('bad_schedule', `\`${option}\` of ${name}`, value, { least, most, hint })
  checkCatchup(name, catchup)
  whole('catchup.max', catchup?.max, 0, 10_000, 'Write the most missed ticks that may run.')
  whole('offset', options.offset, 0, 100_000, 'Write how many windows to go back from the one that just closed.')
  whole('priority', options.priority, -1_000, 1_000, 'Runs with a higher number start first.')
  whole('pauseAfter', options.pauseAfter, 1, 20, 'Write how many failed runs in a row pause the schedule.')
  checkSpan(name, options)
  if (options.overlap !== undefined && !overlapPolicies.includes(options.overlap))
    throw invalid(
      'bad_overlap',
      `\`overlap\` of ${name} cannot be ${show(options.overlap)}`,
      "Write 'queue', 'skip' or 'replace'.",
    )
  if (options.renamedFrom !== undefined) checkedName(options.renamedFrom, 'schedule')
  checkLabels('bad_schedule', `\`labels\` of ${name}`, labels)
  checkCondition(name, options)
  return withDeclaration<Schedule>({ name }, { kind: 'schedule', name, options, ...callerOf(schedule) })
}

function checkCatchup(name: string, catchup: unknown): void {
  if (catchup === undefined) return
  if (!isObject(catchup))
    throw invalid(
      'bad_schedule',
      `\`catchup\` of ${name} cannot be ${show(catchup)}`,
      "Write catchup: { window: '24h', max: 3 }.",
    )
  checkOptionNames(`\`catchup\` of schedule ${name}`, catchup, ['window', 'max', 'onResume'])
  const { window, onResume } = catchup
  if (window !== undefined) durationMs(window, `\`catchup.window\` of ${name}`)
  if (onResume !== undefined && typeof onResume !== 'boolean')
    throw invalid('bad_schedule', `\`catchup.onResume\` of ${name} cannot be ${show(onResume)}`, 'Write true or false.')
}

function checkCondition(name: string, { when, timeout }: ScheduleOptions): void {
  if (when !== undefined && typeof when !== 'function')
    throw invalid(
      'bad_condition',
      `\`when\` of ${name} must be a function, not ${show(when)}`,
      'Write when: ({ scheduledFor }) => isOpen(scheduledFor).',
    )
  if (timeout === undefined) return
  durationWithin(timeout, evaluationBounds, `\`timeout\` of ${name}`)
  if (when === undefined)
    throw invalid(
      'bad_schedule',
      `schedule ${name} has \`timeout\` but no \`when\``,
      'Remove `timeout`: it limits how long `when` takes. To limit an asset, set `timeout` of the asset.',
    )
}

function checkSpan(name: string, { start, end }: ScheduleOptions): void {
  checkInstant(name, 'start', start)
  checkInstant(name, 'end', end)
  if (start === undefined || end === undefined || new Date(start) <= new Date(end)) return
  throw invalid('bad_schedule', `schedule ${name} ends before it starts`, 'Set `end` to a time after `start`.')
}

function checkInstant(owner: string, option: string, value: string | Date | undefined): void {
  if (value === undefined || !Number.isNaN(new Date(value).getTime())) return
  throw invalid('bad_schedule', `\`${option}\` of ${owner} must be a time, not ${show(value)}`, "Write '2025-01-15T00:00:00Z'.")
}

export function selectedKeys(select: Selection, owner: string): string[] {
  const list = Array.isArray(select) ? (select as readonly (AnyAsset | string)[]) : [select as AnyAsset | string]
  return list.map((one) => (isAsset(one) ? one.key : checkedAssetKey(one, `an asset or an asset key, in ${owner}`)))
}
