import { inSeries } from '../../cron/word-lists.ts'
import type { Blamed } from '../partitions/explain.ts'
import type { FactsByCode } from './reasons.ts'
import { type Say, saying, somePartitions, type WordsOf } from './say.ts'

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
  | 'not_recorded'
  | 'nothing_automates'

const numeral = (count: number): string => count.toLocaleString('en')
const were = (count: number): string => (count > 1 ? 'were' : 'was')

/** Why partitions are stale: `raw/orders failed and was never materialized`. */
export function staleInWords(
  { cause, asset_key, partition_keys, count, upstream, since }: FactsByCode['stale_because'],
  when: Say,
): string {
  const whose = somePartitions(asset_key, partition_keys, count)
  const sinceThen = since === null ? '' : `, since ${when(since)}`
  const then = since === null ? '' : ` at ${when(since)}`
  switch (cause) {
    case 'never_materialized':
      return `${whose} ${were(count)} never materialized`
    case 'code_changed':
      return `the code of ${whose} changed${then}`
    case 'freshness':
      return `${whose} ${count > 1 ? 'are older than their' : 'is older than its'} freshness policy allows${sinceThen}`
    case 'upstream_missing':
      return upstream === null ? 'an upstream partition is missing' : missingInWords(upstream)
    case 'upstream_changed': {
      if (upstream === null) return `an upstream partition was materialized again${then}`
      return `${named(upstream)} ${were(upstream.count)} materialized again${then}`
    }
  }
}

const named = ({ asset_key, partition_keys, count }: Blamed): string => somePartitions(asset_key, partition_keys, count)

function missingInWords(upstream: Blamed): string {
  const { count, failed, absent } = upstream
  if (absent === count) return `${named(upstream)} ${count > 1 ? 'do' : 'does'} not exist`
  if (failed === count) return `${named(upstream)} failed and ${were(count)} never materialized`
  const some = [
    ...(failed === 0 ? [] : [`${numeral(failed)} of them failed`]),
    ...(absent === 0 ? [] : [`${numeral(absent)} of them ${absent === 1 ? 'does' : 'do'} not exist`]),
  ]
  return `${named(upstream)} ${were(count)} never materialized${some.length === 0 ? '' : `; ${inSeries(some)}`}`
}

export const assetWords: WordsOf<AssetCode> = {
  made_by_run: ({ run_id, at }, when) => `last materialized at ${when(at)} by ${run_id}`,
  last_run: ({ run_id, at }, when) => `its last run was ${run_id}, at ${when(at)}`,
  made_outside: ({ at }, when) => `last materialized outside Servo, reported at ${when(at)}`,
  wiped: ({ at }, when) => `its earlier materialization was wiped at ${when(at)}`,
  attempt_failed: ({ run_id, at, since, error }, when) => {
    const begun =
      since === null || since === at ? 'the last attempt' : `attempts have failed since ${when(since)}; the last one`
    return `${begun} failed at ${when(at)} in ${run_id}${saying(error)}`
  },
  in_run: ({ run_id, task_key, state }) =>
    `${run_id} will materialize it: ${task_key} is ${state.toLowerCase().replace('_', ' ')}`,
  in_requested_run: ({ run_id }) => `${run_id}, which is not planned yet, may materialize it`,
  stale_because: (facts, when) => `${staleInWords(facts, when)}${facts.path.length > 1 ? ` (${facts.path.join(' → ')})` : ''}`,
  fresh: () => 'neither its upstream assets nor its code have changed since',
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
  not_recorded: ({ kind, name }) => `the ${kind} ${name} may run it, but is not on record yet; servo dev records it`,
  nothing_automates: () => 'no schedule and no sensor runs it',
}
