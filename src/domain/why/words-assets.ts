import { inSeries } from '../../cron/word-lists.ts'
import type { Cause } from '../partitions/status-names.ts'
import { saying, somePartitions, type WordsOf } from './say.ts'

type AssetCode =
  | 'made_by_run'
  | 'last_run'
  | 'made_outside'
  | 'wiped'
  | 'attempt_failed'
  | 'in_run'
  | 'in_requested_run'
  | 'stale_because'
  | 'fresh'
  | 'partition_counts'
  | 'run_by_schedule'
  | 'last_tick'
  | 'run_by_sensor'
  | 'run_by_any_sensor'
  | 'more_automation'
  | 'nothing_automates'

const numeral = (count: number): string => count.toLocaleString('en')
const were = (count: number): string => (count > 1 ? 'were' : 'was')

const staleWords: Readonly<Record<Cause, (whose: string, count: number, of: string, many: number) => string>> = {
  never_materialized: (whose, count) => `${whose} ${were(count)} never materialized`,
  code_changed: (whose) => `the code of ${whose} changed`,
  freshness: (whose, count) =>
    `${whose} ${count > 1 ? 'are' : 'is'} older than ${count > 1 ? 'their' : 'its'} freshness policy allows`,
  upstream_missing: (_whose, _count, of, many) =>
    `${of} ${were(many)} never materialized, or ${many > 1 ? 'do' : 'does'} not exist`,
  upstream_changed: (_whose, _count, of, many) => `${of} ${were(many)} materialized again`,
}

export const assetWords: WordsOf<AssetCode> = {
  made_by_run: ({ run_id, at }, when) => `last materialized at ${when(at)} by ${run_id}`,
  last_run: ({ run_id, at }, when) => `its last run was ${run_id}, at ${when(at)}`,
  made_outside: ({ at }, when) => `last materialized outside Servo, reported at ${when(at)}`,
  wiped: ({ at }, when) => `its earlier materialization was wiped at ${when(at)}`,
  attempt_failed: ({ run_id, at, error }, when) => `the last attempt failed at ${when(at)} in ${run_id}${saying(error)}`,
  in_run: ({ run_id, task_key, state }) =>
    `${run_id} will materialize it: ${task_key} is ${state.toLowerCase().replace('_', ' ')}`,
  in_requested_run: ({ run_id }) => `${run_id}, which is not planned yet, may materialize it`,
  stale_because: ({ cause, asset_key, partition_keys, count, upstream, since, path }, when) => {
    const whose = somePartitions(asset_key, partition_keys, count)
    const of =
      upstream === null ? 'an upstream asset' : somePartitions(upstream.asset_key, upstream.partition_keys, upstream.count)
    const text = staleWords[cause](whose, count, of, upstream?.count ?? 1)
    return `${text}${since === null ? '' : `, since ${when(since)}`}${path.length > 1 ? ` (${path.join(' → ')})` : ''}`
  },
  fresh: () => 'neither its upstream assets nor its code changed since',
  partition_counts: ({ partitions, made, stale, failed, missing }) => {
    if (made === partitions) return `all ${numeral(partitions)} partitions are up to date`
    if (missing === partitions) return `it has ${numeral(partitions)} ${partitions === 1 ? 'partition' : 'partitions'}`
    const others = [
      ...(stale === 0 ? [] : [`${numeral(stale)} ${stale === 1 ? 'is' : 'are'} stale`]),
      ...(failed === 0 ? [] : [`the last attempt at ${numeral(failed)} failed`]),
      ...(missing === 0 ? [] : [`${numeral(missing)} ${were(missing)} never materialized`]),
    ]
    return `${numeral(made)} of ${numeral(partitions)} partitions ${made === 1 ? 'is' : 'are'} up to date, ${inSeries(others)}`
  },
  run_by_schedule: ({ schedule, status, next }, when) => {
    const ticks = next === null ? 'has no next tick' : `ticks next at ${when(next)}`
    return `the schedule ${schedule} runs it${status === 'active' ? ` and ${ticks}` : ', but does not tick'}`
  },
  last_tick: ({ at, verdict }, when) => `${verdict === 'ran' ? 'it ran' : 'it did not run'} at ${when(at)}`,
  run_by_sensor: ({ sensor, status }) =>
    `the sensor ${sensor} may run it${status === 'active' ? '' : ', but is not evaluated'}`,
  run_by_any_sensor: ({ sensors, count }) => {
    const names = [...sensors, ...(count > sensors.length ? [`${numeral(count - sensors.length)} more`] : [])]
    return `the ${count === 1 ? 'sensor' : 'sensors'} ${inSeries(names)} may run any asset`
  },
  more_automation: ({ count }) =>
    count === 1 ? '1 more schedule or sensor may run it' : `${numeral(count)} more schedules and sensors may run it`,
  nothing_automates: () => 'no schedule and no sensor runs it',
}
