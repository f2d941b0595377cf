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
  timezone?: string
  select: Selection
  /** Ticks missed while nothing ran: how far back they count, and how many run at most. */
  catchup?: { window: Duration; max?: number; onResume?: boolean }
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
  if (catchup !== undefined) {
    durationMs(catchup.window, `catchup.window of ${name}`)
    const { max = 0 } = catchup
    if (!Number.isInteger(max) || max < 0)
      throw invalid('bad_catchup', `catchup.max of ${name} is ${show(max)}`, 'Write how many missed ticks may run at most.')
  }
  return withDeclaration<Schedule>({ name }, { kind: 'schedule', name, options, ...callerOf(schedule) })
}

export function selectedKeys(select: Selection, owner: string): string[] {
  const list = Array.isArray(select) ? (select as readonly (AnyAsset | string)[]) : [select as AnyAsset | string]
  return list.map((one) => (isAsset(one) ? one.key : checkedAssetKey(one, `an asset or the key of one, in ${owner}`)))
}
