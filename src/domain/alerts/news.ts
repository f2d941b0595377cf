import type { AlertKind } from '../../contract/alert.ts'
import { MINUTE_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import type { Rows } from '../../model/rows.ts'
import type { BackfillRow } from '../backfills/backfills.table.ts'
import type { RunRow } from '../runs/runs.table.ts'
import { scheduleDefinitions } from '../schedules/schedule-definitions.table.ts'
import type { ScheduleStateRow } from '../schedules/schedule-state.table.ts'
import { failedChecks } from '../sensors/happenings/happenings.ts'
import { sensorDefinitions } from '../sensors/sensor-definitions.table.ts'
import type { SensorStateRow } from '../sensors/sensor-state.table.ts'
import { taskAttempts } from '../tasks/task-attempts.table.ts'
import { tasks } from '../tasks/tasks.table.ts'
import { type AlertRule, hasAsset, hasLabels } from './alert-rule.ts'
import type { AlertFacts, AlertSubject } from './alert-subject.ts'
import type { StaleAssetRow } from './stale-assets.table.ts'

/** Something that an alert may be about, and which rules want to know of it. */
export interface AlertNews {
  readonly kind: AlertKind
  readonly subject: AlertSubject
  readonly title: string
  readonly facts: AlertFacts
  readonly concerns: (rule: AlertRule) => boolean
}

/** As many names as a person reads. */
const MAX_NAMES = 20
const MAX_ERROR = 1_024

const names = (all: Iterable<string>): string[] =>
  [...new Set(all)]
    .sort()
    .slice(0, MAX_NAMES)
    .map((name) => cut(name, 512))

/** The failure of a run, and the checks that failed in it: they are told of together, when the run ends. */
export function newsOfRun(rows: Rows, run: Readonly<RunRow>): AlertNews[] {
  const subject = { type: 'run', run_id: run.run_id } as const
  const all = [...rows.hot(tasks).under(run.run_id)]
  const assetsOf = (some: typeof all): string[] => some.flatMap(({ asset_key }) => asset_key ?? [])
  const about = (assets: readonly string[]) => (rule: AlertRule) =>
    (run.finished_at ?? 0) >= rule.since && hasLabels(rule, run.labels) && hasAsset(rule, assets)
  const shared: AlertFacts = { run_id: run.run_id, trigger: run.trigger_type, finished_at: toIso(run.finished_at ?? 0) }
  const news: AlertNews[] = []
  if (run.state === 'FAILED') {
    const failed = all.filter(({ state }) => state === 'FAILED')
    const [first] = failed
    const error = run.error ?? first?.error_message ?? ''
    const what = first === undefined ? 'could not be planned' : `failed: ${first.task_key}`
    const more = failed.length > 1 ? ` and ${failed.length - 1} more` : ''
    news.push({
      kind: 'run.failed',
      subject,
      title: `Run ${run.run_id} ${what}${more}${error === '' ? '' : `: ${firstLine(error)}`}`,
      facts: {
        ...shared,
        tasks_total: run.tasks_total,
        tasks_failed: run.tasks_failed,
        tasks_skipped: run.tasks_skipped,
        failed_tasks: names(failed.map(({ task_key }) => task_key)),
        ...(error !== '' && { error: cut(error, MAX_ERROR) }),
      },
      // A run that could not be planned has the assets that were asked for.
      concerns: about(first === undefined ? run.asset_selection : assetsOf(failed)),
    })
  }
  const broken = all.flatMap((task) => {
    const found = failedChecks(rows.hot(taskAttempts).get(task.run_id, task.task_key, task.attempt)?.output)
    return found === undefined ? [] : [{ task, ...found }]
  })
  if (broken.length > 0) {
    const checks = broken.flatMap(({ task, checks }) => checks.map((check) => `${task.task_key}: ${check}`))
    const [first = ''] = checks
    news.push({
      kind: 'check.failed',
      subject,
      title: `Check failed in run ${run.run_id}: ${first}${checks.length > 1 ? ` and ${checks.length - 1} more` : ''}`,
      facts: {
        ...shared,
        severity: broken.some(({ severity }) => severity === 'error') ? 'error' : 'warn',
        checks_failed: checks.length,
        checks: names(checks),
      },
      concerns: about(assetsOf(broken.map(({ task }) => task))),
    })
  }
  return news
}

export function newsOfBackfill(backfill: Readonly<BackfillRow>): AlertNews[] {
  const { backfill_id, state, total_partitions, succeeded_partitions, failed_partitions, skipped_partitions } = backfill
  if (state !== 'SUCCEEDED' && state !== 'FAILED') return []
  const assets = names(backfill.asset_selection)
  return [
    {
      kind: state === 'SUCCEEDED' ? 'backfill.succeeded' : 'backfill.failed',
      subject: { type: 'backfill', backfill_id },
      title:
        state === 'SUCCEEDED'
          ? `Backfill ${backfill_id} succeeded: ${succeeded_partitions} partitions`
          : `Backfill ${backfill_id} failed: ${failed_partitions} of ${total_partitions} partitions`,
      facts: { backfill_id, assets, total_partitions, succeeded_partitions, failed_partitions, skipped_partitions },
      concerns: (rule) => (backfill.finished_at ?? 0) >= rule.since && hasAsset(rule, backfill.asset_selection),
    },
  ]
}

export function newsOfSchedule(rows: Rows, state: Readonly<ScheduleStateRow>): AlertNews[] {
  const { schedule_id, late_tick: tick, late_tick_at: decidedAt } = state
  if (tick === null || decidedAt === null) return []
  const schedule = rows.hot(scheduleDefinitions).get(schedule_id)?.schedule_name ?? schedule_id
  const minutes = Math.round((decidedAt - tick) / MINUTE_MS)
  return [
    {
      kind: 'schedule.late',
      subject: { type: 'schedule', schedule_id, tick: toIso(tick) },
      title: `Schedule ${schedule} was ${minutes} minutes late: nothing ran at ${toIso(tick)}`,
      facts: {
        schedule,
        scheduled_for: toIso(tick),
        decided_at: toIso(decidedAt),
        late_sec: Math.round((decidedAt - tick) / SECOND_MS),
      },
      concerns: (rule) => decidedAt >= rule.since,
    },
  ]
}

export function newsOfSensor(rows: Rows, state: Readonly<SensorStateRow>): AlertNews[] {
  const { sensor_id, failing_since: since, consecutive_errors: errors, last_error } = state
  if (since === null) return []
  const sensor = rows.hot(sensorDefinitions).get(sensor_id)?.sensor_name ?? sensor_id
  const error = last_error ?? ''
  return [
    {
      kind: 'sensor.failing',
      subject: { type: 'sensor', sensor_id, failing_since: toIso(since) },
      title: `Sensor ${sensor} has failed ${errors} times in a row: ${firstLine(error)}`,
      facts: { sensor, consecutive_errors: errors, failing_since: toIso(since), error: cut(error, MAX_ERROR) },
      concerns: (rule) => (state.last_error_at ?? 0) >= rule.since,
    },
  ]
}

export function newsOfAsset({ asset_key, stale_since, partitions, as_of }: Readonly<StaleAssetRow>): AlertNews[] {
  return [
    {
      kind: 'asset.stale',
      subject: { type: 'asset', asset_key, stale_since: toIso(stale_since) },
      title: `Asset ${asset_key} is stale: ${partitions === 1 ? 'it is' : `${partitions} partitions are`} older than its freshness policy allows`,
      facts: { asset: asset_key, partitions, stale_since: toIso(stale_since), as_of: toIso(as_of) },
      concerns: (rule) => hasAsset(rule, [asset_key]),
    },
  ]
}

const firstLine = (text: string): string => cut(text.split('\n', 1)[0] ?? '', 300)

export const cut = (text: string, most: number): string =>
  text.length <= most ? text : `${text.slice(0, most - 1).toWellFormed()}…`
