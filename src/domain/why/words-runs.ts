import { saying, type WordsOf } from './say.ts'

type OriginCode =
  | 'asked_by_schedule'
  | 'asked_by_sensor'
  | 'asked_by_user'
  | 'asked_by_rerun'
  | 'asked_by_backfill'
  | 'asked_by_automation'
  | 'asked_long_ago'

const rerunOf = { from_failure: 'the unsuccessful part', subset: 'a part', all: 'all' } as const

export const originWords: WordsOf<OriginCode> = {
  asked_by_schedule: ({ schedule, scheduled_for, cause, by, at }, when) => {
    if (cause === 'manual') return `${by ?? 'somebody'} triggered the schedule ${schedule} at ${when(at)}`
    if (cause !== 'catch_up')
      return `the schedule ${schedule} ticked${scheduled_for === null ? '' : ` at ${when(scheduled_for)}`}`
    const tick = scheduled_for === null ? 'a tick' : `its tick of ${when(scheduled_for)}`
    return `the schedule ${schedule} was caught up${by === null ? '' : ` by ${by}`} at ${when(at)}, for ${tick}`
  },
  asked_by_sensor: ({ sensor, message_id, by, at }, when) => {
    const why = message_id === null ? 'poll' : `message ${message_id}`
    return `sensor ${sensor} requested it at ${when(at)} (${why}${by === null ? '' : ` from ${by}`})`
  },
  asked_by_user: ({ user, at }, when) => `${user} requested it at ${when(at)}`,
  asked_by_rerun: ({ run_id, mode, at }, when) => `it reruns ${rerunOf[mode]} of ${run_id}, requested at ${when(at)}`,
  asked_by_backfill: ({ backfill_id, chunk_index, at }, when) =>
    `backfill ${backfill_id} requested it at ${when(at)}, as chunk ${chunk_index + 1}`,
  asked_by_automation: ({ asset_key, at }, when) => `the automation of ${asset_key} requested it at ${when(at)}`,
  asked_long_ago: ({ run_id }) => `the origin of ${run_id} is no longer on record`,
}

type RunCode =
  | 'selects'
  | 'after_runs'
  | 'not_planned'
  | 'task_running'
  | 'task_with_queue'
  | 'overlap_waits'
  | 'overlap_skipped'
  | 'more_skipped'
  | 'pool_full'
  | 'no_worker_free'
  | 'upstream_unfinished'
  | 'retry_later'
  | 'more_tasks'
  | 'cancel_asked'
  | 'cancelled_too_late'
  | 'unplannable'
  | 'task_failed'
  | 'more_failed'
  | 'tasks_skipped'
  | 'all_succeeded'

/** The first few of a list, and how many more there are. */
function some(names: readonly string[], most = 5): string {
  const more = names.length - most
  return more > 0 ? `${names.slice(0, most).join(', ')} and ${more} more` : names.join(', ')
}

export const runWords: WordsOf<RunCode> = {
  selects: ({ assets, partitions }) =>
    `it materializes ${some(assets)}${partitions === null || partitions.length === 0 ? '' : `, partitions ${some(partitions)}`}`,
  after_runs: ({ run_ids }) => `it starts when ${some(run_ids)} ${run_ids.length === 1 ? 'has' : 'have'} ended`,
  not_planned: ({ at }, when) => `it was requested at ${when(at)} and waits for a server to plan it (servo dev)`,
  task_running: ({ task_key, attempt, since, worker_id }, when) =>
    `${task_key} has been running since ${when(since)}${attempt > 1 ? `, attempt ${attempt}` : ''}${worker_id === null ? '' : `, on ${worker_id}`}`,
  task_with_queue: ({ task_key, queue, since }, when) =>
    `${task_key} has been waiting since ${when(since)} for a worker of the queue ${queue} to take it`,
  overlap_waits: ({ task_key, run_id }) => `${task_key} waits for ${run_id}, which is materializing it (overlap)`,
  overlap_skipped: ({ task_key, run_id }) => `${task_key} was skipped: ${run_id} was materializing it (overlap: skip)`,
  more_skipped: ({ count }) =>
    `${count.toLocaleString('en')} more ${count === 1 ? 'task was' : 'tasks were'} skipped because other runs were materializing the same partitions`,
  pool_full: ({ task_key, pool, slots }) =>
    `${task_key} waits for the pool ${pool}: ${slots === 1 ? 'its only slot is' : `all ${slots} slots are`} in use`,
  no_worker_free: ({ task_key, queue, since, busy }, when) =>
    `${task_key} has been ready since ${when(since)} and waits for a free worker of the queue ${queue}${busy === 0 ? '' : `, where ${busy} ${busy === 1 ? 'task is' : 'tasks are'} ahead`}`,
  upstream_unfinished: ({ task_key, upstream, count }) => {
    const named = upstream.map(({ task_key: above, state }) => `${above} (${state.toLowerCase().replace('_', ' ')})`)
    const more = count - upstream.length
    return `${task_key} waits for ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  },
  retry_later: ({ task_key, attempt, at, error }, when) =>
    `${task_key} failed at attempt ${attempt} and will be retried ${at === null ? 'soon' : `at ${when(at)}`}${saying(error)}`,
  more_tasks: ({ count }) => `${count.toLocaleString('en')} more ${count === 1 ? 'task waits' : 'tasks wait'}`,
  cancel_asked: ({ by, at, reason }, when) => `${by ?? 'somebody'} cancelled it at ${when(at)}${saying(reason)}`,
  cancelled_too_late: ({ by, at, reason }, when) =>
    `${by ?? 'somebody'} cancelled it at ${when(at)}, too late to stop it${saying(reason)}`,
  unplannable: ({ error }) => `it could not be planned${saying(error)}`,
  task_failed: ({ task_key, attempts, error, at }, when) =>
    `${task_key} failed at ${when(at)}${attempts > 1 ? `, attempt ${attempts}` : ''}${saying(error)}`,
  more_failed: ({ count }) => `${count.toLocaleString('en')} more ${count === 1 ? 'task' : 'tasks'} failed`,
  tasks_skipped: ({ count, cause_task_key }) =>
    `${count.toLocaleString('en')} ${count === 1 ? 'task was' : 'tasks were'} skipped because of ${cause_task_key ?? 'that'}`,
  all_succeeded: ({ count, at }, when) =>
    count === 1
      ? `its task succeeded at ${when(at)}`
      : `all ${count.toLocaleString('en')} tasks succeeded, the last at ${when(at)}`,
}
