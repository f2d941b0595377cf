import { overlapPolicies } from '../../contract/schedule.ts'
import { type AnyAsset, isAsset, type PartitionsOf } from '../any-asset.ts'
import { callerOf } from '../caller.ts'
import { optionsOf, withDeclaration } from '../declaration.ts'
import { type Duration, durationMs } from '../duration.ts'
import { checkedAssetKey, checkedName, invalid, show } from '../invalid.ts'
import { type PartitionText, partitionText } from '../partitions/partition-key.ts'
import type { AnyPartitions, KeyOf } from '../partitions/partitions.ts'
import { issuesText } from '../standard-schema.ts'
import { checkedCron } from './when.ts'

/** A request of a sensor. */
export interface RunRequest {
  readonly assetKey: string
  readonly partition?: PartitionText
  /** Of several requests with the same key only the first makes a run. */
  readonly runKey?: string
}

export type RunArguments<P> = [P] extends [undefined]
  ? [options?: { key?: string; partition?: never }]
  : [options: { partition: KeyOf<P>; key?: string }]

/** Requests a run of an asset, and of one partition if it has any. */
export function run<A extends AnyAsset>(asset: A, ...[options]: RunArguments<PartitionsOf<A>>): RunRequest {
  if (!isAsset(asset))
    throw invalid('not_an_asset', `${show(asset)} is not an asset`, 'Import the asset and write run(orders).')
  const { partitions } = optionsOf<{ partitions?: AnyPartitions }>(asset)
  const { partition, key } = (options ?? {}) as { partition?: unknown; key?: string }
  if (partitions === undefined && partition !== undefined)
    throw invalid('bad_partition', `${asset.key} has no partitions`, `Write run(${asset.key}).`)
  const checked = partitions?.key.safeParse(partition)
  if (checked?.error !== undefined)
    throw invalid(
      'bad_partition',
      `${show(partition)} is not a partition of ${asset.key}: ${issuesText(checked.error.issues)}`,
      'Write run(orders, { partition }) with a key of its partitions.',
    )
  if (key !== undefined && (typeof key !== 'string' || key === ''))
    throw invalid(
      'bad_run_key',
      `the key of a run of ${asset.key} is ${show(key)}`,
      'Write a text, such as the id of the event.',
    )
  return {
    assetKey: asset.key,
    ...(partitions !== undefined && { partition: partitionText(partition) }),
    ...(key !== undefined && { runKey: key }),
  }
}

/** The assets that a schedule runs, or keys of assets in other projects. */
export type Selection = AnyAsset | string | readonly (AnyAsset | string)[]

export interface ScheduleOptions {
  /** One expression, or several of which any may fire. */
  cron: string | readonly string[]
  /** The zone in which the expressions are read; UTC unless told. */
  timezone?: string
  select: Selection
  description?: string
  /** No tick lies before the one or after the other: a moment such as `2025-01-15T00:00:00Z`. */
  start?: string | Date
  end?: string | Date
  /** Which partitions each tick runs. Unless told, the window of time that has just closed, or all keys where there are no windows. */
  partitions?: string | readonly string[]
  /** How many windows before the one that has just closed. */
  offset?: number
  /** Ticks missed while nothing ran: how far back they count, and how many run at most. */
  catchup?: { window: Duration; max?: number; onResume?: boolean }
  /** What a tick does while a run of an earlier tick is unfinished. Unless told, the runs go on side by side. */
  overlap?: 'queue' | 'skip' | 'replace'
  /** Labels and priority of its runs. */
  labels?: Readonly<Record<string, string>>
  priority?: number
  /** It pauses itself when so many of its runs failed in a row. */
  pauseAfter?: number
  /** The name it had before: it keeps its history. */
  renamedFrom?: string
  /** False turns it off. */
  enabled?: boolean
}

export interface Schedule {
  readonly name: string
}

export function schedule(name: string, options: ScheduleOptions): Schedule {
  checkedName(name, 'schedule')
  const { cron, timezone = 'UTC', select, catchup } = options ?? {}
  const expressions = Array.isArray(cron) ? cron : [cron]
  if (expressions.length === 0) checkedCron(undefined, timezone, `schedule ${name}`)
  for (const expression of expressions) checkedCron(expression, timezone, `schedule ${name}`)
  if (selectedKeys(select, `schedule ${name}`).length === 0)
    throw invalid('bad_selection', `schedule ${name} selects nothing`, 'Write select: [orders, revenue].')
  if (catchup !== undefined) durationMs(catchup.window, `catchup.window of ${name}`)
  checkWholeNumber(name, 'catchup.max', catchup?.max, 0, 10_000, 'Write how many missed ticks may run at most.')
  checkWholeNumber(name, 'offset', options.offset, 0, 100_000, 'Write how many windows before the one that has just closed.')
  checkWholeNumber(name, 'priority', options.priority, -1_000, 1_000, 'Write a number; runs with a larger one start first.')
  checkWholeNumber(name, 'pauseAfter', options.pauseAfter, 1, 20, 'Write after how many failed runs in a row it pauses itself.')
  checkInstant(name, 'start', options.start)
  checkInstant(name, 'end', options.end)
  if (options.overlap !== undefined && !overlapPolicies.includes(options.overlap))
    throw invalid('bad_overlap', `overlap of ${name} is ${show(options.overlap)}`, "Write 'queue', 'skip' or 'replace'.")
  if (options.renamedFrom !== undefined) checkedName(options.renamedFrom, 'schedule')
  return withDeclaration<Schedule>({ name }, { kind: 'schedule', name, options, ...callerOf(schedule) })
}

function checkWholeNumber(
  owner: string,
  option: string,
  value: number | undefined,
  min: number,
  max: number,
  hint: string,
): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return
  throw invalid(
    'bad_schedule',
    `${option} of ${owner} is ${show(value)}; it must be a whole number from ${min} to ${max}`,
    hint,
  )
}

function checkInstant(owner: string, option: string, value: string | Date | undefined): void {
  if (value === undefined || !Number.isNaN(new Date(value).getTime())) return
  throw invalid(
    'bad_schedule',
    `${option} of ${owner} is ${show(value)}, which is not a moment`,
    "Write '2025-01-15T00:00:00Z'.",
  )
}

export function selectedKeys(select: Selection, owner: string): string[] {
  const list = Array.isArray(select) ? (select as readonly (AnyAsset | string)[]) : [select as AnyAsset | string]
  return list.map((one) => (isAsset(one) ? one.key : checkedAssetKey(one, `an asset or the key of one, in ${owner}`)))
}
