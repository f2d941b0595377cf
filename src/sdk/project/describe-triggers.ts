import type { ScheduleDefinitionInput } from '../../contract/schedule.ts'
import type { SensorDefinitionInput } from '../../contract/sensor.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Declaration } from '../declaration.ts'
import type {
  AnyWatched,
  AssetHappening,
  AssetSensorOptions,
  PollOptions,
  PushOptions,
  RunSensorOptions,
  ToldSettings,
  WatchedRunState,
} from '../declare/sensor-options.ts'
import { type ScheduleOptions, selectedKeys } from '../declare/trigger.ts'
import { type Duration, durationMs } from '../duration.ts'

const msOf = (duration: Duration | undefined, option: string): number | undefined =>
  duration === undefined ? undefined : durationMs(duration, option)

export function describeSchedule({ name, options }: Declaration): ScheduleDefinitionInput {
  const schedule = options as ScheduleOptions
  const { cron, timezone = 'UTC', select, partitions, catchup, enabled = true } = schedule
  const instant = (at: string | Date | undefined) => at && new Date(at).toISOString()
  return withoutUndefined({
    name,
    description: schedule.description,
    cron_expressions: typeof cron === 'string' ? [cron] : [...cron],
    timezone,
    start_at: instant(schedule.start),
    end_at: instant(schedule.end),
    asset_selection: selectedKeys(select, `schedule ${name}`),
    partition_selection: typeof partitions === 'string' ? [partitions] : partitions && [...partitions],
    partition_offset: schedule.offset,
    catchup_window_minutes: catchup?.window && Math.ceil(durationMs(catchup.window, 'catchup.window') / 60_000),
    max_catchup_ticks: catchup?.max,
    catch_up_on_resume: catchup?.onResume,
    overlap: schedule.overlap,
    labels: schedule.labels && { ...schedule.labels },
    priority: schedule.priority,
    pause_after: schedule.pauseAfter,
    has_condition: schedule.when === undefined ? undefined : true,
    condition_timeout_ms: msOf(schedule.timeout, 'timeout'),
    enabled,
    renamed_from: schedule.renamedFrom,
  })
}

export function describeSensor({ kind, name, options }: Declaration): SensorDefinitionInput {
  const { description, timeout, select, renamedFrom, enabled, maxTries } = options as ToldSettings<unknown>
  const { minInterval } = options as Partial<PollOptions<unknown, unknown>>
  return withoutUndefined({
    name,
    description,
    config: describeSource(kind, name, options),
    min_interval_sec: minInterval === undefined ? undefined : Math.ceil(durationMs(minInterval, 'minInterval') / 1_000),
    timeout_ms: msOf(timeout, 'timeout'),
    asset_selection: select === undefined ? undefined : selectedKeys(select, `sensor ${name}`),
    max_tries: maxTries,
    enabled,
    renamed_from: renamedFrom,
  })
}

function describeSource(kind: string, name: string, options: unknown): SensorDefinitionInput['config'] {
  const owner = `sensor ${name}`
  if (kind === 'push_sensor') return (options as PushOptions<unknown, unknown>).source.data
  if (kind === 'poll_sensor')
    return { type: 'poll', every_ms: durationMs((options as PollOptions<unknown, unknown>).every, 'every') }
  if (kind === 'asset_sensor') {
    const { watch, happenings } = options as AssetSensorOptions<AnyWatched, AssetHappening, unknown>
    return { type: 'asset', assets: selectedKeys(watch, owner), ...(happenings && { happenings: unique(happenings) }) }
  }
  const { states, watch } = options as RunSensorOptions<WatchedRunState, unknown>
  return { type: 'run', states: unique(states), ...(watch !== undefined && { assets: selectedKeys(watch, owner) }) }
}

const unique = <T>(items: readonly T[]): T[] => [...new Set(items)]
