import { traceOf, traceOfRun } from '../../domain/runs/run-trace.ts'
import { toIso } from '../../lib/time.ts'
import { secretsOfAlert } from '../../sdk/declare/alerts/alert.ts'
import type { Change } from '../../server/leader/feed.ts'
import type { Reload } from '../../server/machine/local-server.ts'
import { type DevVoice, isShown } from '../show-dev.ts'
import type { ServerLog } from './server-log.ts'

/** As many assets of a selection as a line of a log needs. */
const SHOWN_ASSETS = 20

/** Tells of a server in its log. Tasks that succeed are not told of: the line about their run counts them. */
export function logVoice(log: ServerLog): DevVoice {
  return {
    ready(url, loaded, ms, { isOn }) {
      learn(log, loaded)
      const project = loaded.ok ? { project: loaded.manifest.project, assets: loaded.manifest.assets.length } : {}
      log.info('server ready', { url, ...project, automation: isOn, start_ms: Math.round(ms), pid: process.pid })
    },
    loaded(loaded) {
      if (loaded.ok) {
        log.info('project loaded', { ms: Math.round(loaded.ms), ...loaded.changed })
        return
      }
      for (const { file, line, message, hint } of loaded.problems)
        log.error(`project not loaded: ${message}`, { file, line, hint })
    },
    changed(change) {
      if (isShown(change)) logChange(log, change)
    },
    printed: (by, text) => log.info('printed', { by, text: text.trimEnd() }),
    draining: (running, ms) => log.info('draining', { running, up_to_sec: ms / 1_000 }),
    stopped: (running) => log.info('server stopped', { interrupted: running }),
  }
}

/** The secrets of webhooks and alerts have names that their owner chose. */
function learn(log: ServerLog, loaded: Reload): void {
  if (!loaded.ok) return
  const { sensors, alerts } = loaded.manifest
  log.learnSecrets([
    ...sensors.flatMap(({ config }) => (config.type === 'webhook' ? config.secrets : [])),
    ...alerts.flatMap(secretsOfAlert),
  ])
}

function logChange(log: ServerLog, change: Change): void {
  if (change.type === 'run') logRun(log, change)
  else if (change.type === 'task') logTask(log, change)
  else if (change.type === 'tick') {
    const { tick_id, status, scheduled_for, cause, reason, run_id, tick_count } = change.tick
    const when = scheduled_for === null ? undefined : toIso(scheduled_for)
    const { schedule_name: schedule, schedule_id } = change.schedule
    const trace = tick_id !== null && run_id !== null ? traceOf(tick_id, null).traceId : undefined
    const fields = { schedule, schedule_id, trace_id: trace, status, scheduled_for: when, cause, run_id, reason }
    log[status === 'failed' ? 'error' : 'info']('schedule ticked', { ...fields, ...((tick_count ?? 1) > 1 && { tick_count }) })
  } else if (change.type === 'evaluation') {
    const { sensor, evaluation, run_ids } = change
    const { status, trigger_source, message_id, error } = evaluation
    const fields = {
      sensor: sensor.sensor_name,
      sensor_id: sensor.sensor_id,
      eval_id: evaluation.eval_id,
      trace_id: status === 'triggered' ? traceOf(evaluation.eval_id, change.traceparent).traceId : undefined,
      status,
      trigger_source,
      message_id,
      run_ids: run_ids.slice(0, SHOWN_ASSETS),
      error,
    }
    log[status === 'error' ? 'error' : 'info']('sensor evaluated', fields)
  } else if (change.type === 'backfill') {
    const {
      backfill_id,
      state,
      total_partitions,
      succeeded_partitions,
      failed_partitions,
      state_reason: reason,
    } = change.backfill
    const fields = { backfill_id, state, total_partitions, succeeded_partitions, failed_partitions, reason }
    log[state === 'FAILED' ? 'error' : 'info']('backfill changed', fields)
  } else {
    const { of, name, to, by, reason } = change
    log.info(`${of} ${to}`, { [of]: name, by, reason })
  }
}

function logRun(log: ServerLog, { run, isNew }: Extract<Change, { type: 'run' }>): void {
  const { run_id, trigger_type, state, error } = run
  const { traceId: trace_id } = traceOfRun(run)
  const { trigger_source_ref: source } = run
  // The name of a token comes with its id.
  const requested_by = source.type === 'manual' ? source.user_id : undefined
  const selection = run.asset_selection.slice(0, SHOWN_ASSETS)
  if (isNew) log.info('run requested', { run_id, trace_id, trigger_type, selection, requested_by })
  if (run.finished_at === null) return
  const { tasks_total, tasks_failed, tasks_skipped, requested_at, finished_at } = run
  const counts = { tasks_total, tasks_failed, tasks_skipped, duration_ms: finished_at - requested_at }
  log[state === 'FAILED' ? 'error' : 'info']('run finished', { run_id, trace_id, trigger_type, state, ...counts, error })
}

function logTask(log: ServerLog, { task, attempt, run }: Extract<Change, { type: 'task' }>): void {
  if (task.state !== 'FAILED' && task.state !== 'RETRY_WAIT') return
  const { run_id, task_key, error_message: error } = task
  const will_retry = task.state === 'RETRY_WAIT'
  const trace_id = run && traceOfRun(run).traceId
  log.warn('attempt failed', { run_id, trace_id, task_key, attempt: attempt?.attempt ?? task.attempt, will_retry, error })
}
