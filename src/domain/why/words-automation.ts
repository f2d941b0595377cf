import type { RunOfEvaluation } from '../../contract/delivery.ts'
import { inSeries } from '../../cron/word-lists.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { RunState } from '../runs/runs.table.ts'
import { minutesInWords } from '../schedules/deciding/due.ts'
import { type BesidesRuns, wordsBesidesRuns } from '../sensors/evaluation/besides-runs.ts'
import { whyNoNewRun } from '../sensors/evaluation/no-new-run.ts'
import { headLine, type Say, saying, type WordsOf, withPlace } from './say.ts'

const inState = (state: string | null): string => (state === null ? '' : ` (${state.toLowerCase()})`)

/** What is on record may begin with these words itself. */
const sayingOnce = (words: string, text: string): string =>
  text.startsWith(words) ? headLine(text) : `${words}${saying(text)}`

/** What became of a run that was in the way. */
const SINCE: Readonly<Record<RunState, string>> = {
  PENDING: 'it is still pending',
  RUNNING: 'it is still running',
  SUCCEEDED: 'it has succeeded since',
  FAILED: 'it has failed since',
  CANCELLED: 'it has been cancelled since',
}

/** Of a sensor or schedule whose code cannot be evaluated. */
export const waitingText = (outage: string): string => `it waits until its code can be evaluated: ${outage}`

type ScheduleCode =
  | 'triggered'
  | 'triggered_by_hand'
  | 'automation_off'
  | 'skipped_together'
  | 'catchup_window'
  | 'catchup_limit'
  | 'overlap'
  | 'no_window'
  | 'condition'
  | 'condition_error'
  | 'bad_selection'
  | 'code_removed'
  | 'code_unavailable'
  | 'other_reason'
  | 'not_due'
  | 'before_start'
  | 'after_end'
  | 'not_declared_yet'
  | 'changed_since'
  | 'undecided'
  | 'never_due'
  | 'next_tick'
  | 'no_next_tick'
  | 'paused'
  | 'resume_with'
  | 'disabled'
  | 'removed'

export const scheduleWords: WordsOf<ScheduleCode> = {
  triggered: ({ run_id, state, cause, by, decided_at, lateness_ms }, when) => {
    const run = `as ${run_id ?? 'a run that is no longer on record'}${inState(state)}`
    if (cause === 'manual') return `${by ?? 'somebody'} triggered it at ${when(decided_at)}, ${run}`
    if (cause === 'catch_up') return `caught up${by === null ? '' : ` by ${by}`} at ${when(decided_at)}, ${run}`
    const late = lateness_ms === null || lateness_ms <= SECOND_MS ? 'on time' : `${Math.round(lateness_ms / SECOND_MS)} s late`
    return `${late}, ${run}`
  },
  triggered_by_hand: ({ run_id, state, by, at }, when) =>
    `${by ?? 'somebody'} triggered it at ${when(at)}, as ${run_id ?? 'a run that is no longer on record'}${inState(state)}`,
  automation_off: () =>
    'automation is off on the server that runs (servo dev --no-automation): nothing ticks, no sensor is evaluated, and no backfill plans a chunk',
  skipped_together: ({ first, last, count }, when) =>
    `it is one of ${count.toLocaleString('en')} ticks in a row, from ${when(first)} to ${when(last)}`,
  catchup_window: ({ window_minutes, decided_at }, when) =>
    `no server ticked then, and at ${when(decided_at)} it was older than the catch-up window${window_minutes === null ? '' : ` of ${minutesInWords(window_minutes)}`}`,
  catchup_limit: ({ most, decided_at }, when) => {
    const rule =
      most === 0
        ? 'the schedule has no catch-up'
        : most === null
          ? 'newer ticks were caught up instead'
          : `of the missed ticks, only the newest ${most === 1 ? 'one' : most} may run`
    return `no server ticked then, and at ${when(decided_at)} it was too late: ${rule}`
  },
  overlap: ({ run_id, scheduled_for, state }, when) => {
    const of = scheduled_for === null ? 'of an earlier tick' : `of ${when(scheduled_for)}`
    const now = state === null ? '' : `; ${SINCE[state]}`
    return `${run_id ?? 'a run'} ${of} was unfinished (overlap: skip)${now}`
  },
  no_window: ({ text }) => headLine(text),
  condition: ({ text }) => sayingOnce('its condition did not hold', text),
  condition_error: ({ text }) => sayingOnce('its condition could not be evaluated', withPlace(text)),
  bad_selection: ({ text }) => `its selection cannot run${saying(text)}`,
  code_removed: ({ text }) => headLine(text),
  code_unavailable: ({ text }) => waitingText(headLine(text)),
  other_reason: ({ text }) => headLine(text),
  not_due: ({ before, after }, when) => {
    const nearest = [
      ...(before === null ? [] : [`the tick before is at ${when(before)}`]),
      ...(after === null ? [] : [`the ${before === null ? 'first tick' : 'one'} after is at ${when(after)}`]),
    ]
    return nearest.length === 0 ? 'it never ticks' : `it does not tick then; ${nearest.join(', ')}`
  },
  before_start: ({ start_at }, when) => `it does not tick before its start, ${when(start_at)}`,
  after_end: ({ end_at }, when) => `it does not tick after its end, ${when(end_at)}`,
  not_declared_yet: ({ created_at }, when) => `it was not declared until ${when(created_at)}`,
  changed_since: ({ defined_at }, when) =>
    `it was changed at ${when(defined_at)}, and before that only its ticks are on record, not the reasons for missing ones`,
  undecided: ({ decided_until }, when) =>
    `no server has decided this tick yet${decided_until === null ? '' : `: the last one ticked until ${when(decided_until)}`}. Start one: servo dev`,
  never_due: ({ since }, when) => `it has had no tick since it was declared at ${when(since)}`,
  next_tick: ({ at }, when) => `next tick: ${when(at)}`,
  no_next_tick: ({ end_at }, when) =>
    end_at === null ? 'there is no next tick' : `there is no next tick: it ended at ${when(end_at)}`,
  paused: ({ by, at, reason, is_everything }, when) =>
    `${is_everything ? 'all automation was ' : ''}paused${by === null ? '' : ` by ${by}`}${at === null ? '' : ` at ${when(at)}`}${saying(reason)}`,
  resume_with: ({ command }) => `resume it: ${command}`,
  disabled: ({ since }, when) => `it has been disabled since ${when(since)}`,
  removed: ({ at }, when) => `it was removed at ${when(at)}`,
}

type SensorCode =
  | 'evaluation_triggered'
  | 'evaluation_no_new_data'
  | 'evaluation_error'
  | 'evaluation_stale'
  | 'evaluation_duplicate'
  | 'never_evaluated'
  | 'backing_off'
  | 'secret_missing'
  | 'dead_letters'
  | 'cursor_reset'
  | 'next_poll'
  | 'message_accepted'
  | 'message_failing'
  | 'message_dead'
  | 'message_unknown'
  | 'message_conflicts'

/**
 * What an evaluation did, after `begin`: `requested run_… and moved its cursor`, or why there is no new run. `count` is how many
 * requests there are in all.
 */
function runsAsked(
  begin: readonly string[],
  { runs, count, when, besides }: { runs: readonly RunOfEvaluation[]; count: number; when: Say; besides: BesidesRuns },
): string {
  const did = (what: string): string => inSeries([...begin, what, ...wordsBesidesRuns(besides)])
  const made = runs.filter(({ created }) => created).map(({ run_id }) => run_id)
  const others = runs.filter(({ created }) => !created).map((one) => whyNoNewRun(one, { when }))
  const more = count > runs.length ? ` and ${count - runs.length} more` : ''
  if (runs.length === 0) return did(`requested ${count} ${count === 1 ? 'run' : 'runs'}`)
  if (made.length === 0) return `${did('made no new run')}: ${others.join('; ')}${more}`
  return `${did(`requested ${made.join(', ')}${more}`)}${others.length === 0 ? '' : `; no new run where ${others.join('; ')}`}`
}
/** The same of an evaluation without runs. */
const onlyBesides = (facts: BesidesRuns): string => `requested no run, but ${inSeries(wordsBesidesRuns(facts))}`
export const didMore = (facts: BesidesRuns): boolean => wordsBesidesRuns(facts).length > 0
const tries = (count: number): string => `${count} ${count === 1 ? 'try' : 'tries'}`
const ofMessage = (id: string | null): string => (id === null ? 'a poll' : `message ${id}`)

/** Of the variables in which a webhook looks for its secret. */
export const secretNotSet = (variables: readonly string[]): string =>
  `its secret ${variables.join(' or ')} is not set in the environment of the server, so its messages are refused`

export const sensorWords: WordsOf<SensorCode> = {
  evaluation_triggered: ({ at, message_id, by, runs, count, ...besides }, when) =>
    `at ${when(at)} ${ofMessage(message_id)}${by === null ? '' : ` from ${by}`} ${runsAsked([], { runs, count, when, besides })}`,
  evaluation_no_new_data: ({ at, until, count, message_id, ...besides }, when) => {
    if (didMore(besides)) return `at ${when(at)} ${ofMessage(message_id)} ${onlyBesides(besides)}`
    if (message_id !== null) return `at ${when(at)} message ${message_id} requested nothing`
    if (until === null || count === 1) return `at ${when(at)} it was polled and found nothing new`
    return `from ${when(at)} to ${when(until)} it was polled ${count.toLocaleString('en')} times and found nothing new`
  },
  evaluation_error: ({ at, message_id, try: attempt, error }, when) =>
    `at ${when(at)} ${ofMessage(message_id)} failed${attempt === null ? '' : ` at try ${attempt}`}${saying(withPlace(error))}`,
  evaluation_stale: ({ at }, when) =>
    `at ${when(at)} a poll did not count: another poll from the same cursor was faster, or the cursor was reset`,
  evaluation_duplicate: ({ at, message_id }, when) =>
    `at ${when(at)} ${ofMessage(message_id)} did not count: it had been accepted before`,
  never_evaluated: ({ is_poll, since }, when) =>
    is_poll
      ? `it has not been polled since it was declared at ${when(since)}; sensors are polled while a server runs (servo dev)`
      : `no message has been evaluated since it was declared at ${when(since)}`,
  backing_off: ({ errors, error, until }, when) =>
    `${errors === 1 ? 'its last evaluation' : `its last ${errors} evaluations`} failed${until === null ? '' : ` and it is not polled before ${when(until)}`}${saying(error)}`,
  secret_missing: ({ variables }) => secretNotSet(variables),
  dead_letters: ({ sensor, count }) =>
    `${count === 1 ? '1 message is a dead letter' : `${count} messages are dead letters`}: servo sensors dead-letters ${sensor}`,
  cursor_reset: ({ at, by, reason }, when) => `${by ?? 'somebody'} reset its cursor at ${when(at)}${saying(reason)}`,
  next_poll: ({ at, is_due }, when) => (is_due ? 'its next poll is due now' : `next poll: ${when(at)}`),
  message_accepted: ({ at, tries: count, runs, ...besides }, when) => {
    const accepted = `it was accepted at ${when(at)}${count > 1 ? ` at try ${count}` : ''}`
    if (runs === null) return `${accepted}; its runs are no longer on record`
    if (runs.length === 0) return `${accepted} and ${didMore(besides) ? onlyBesides(besides) : 'requested nothing'}`
    return runsAsked([accepted], { runs, count: runs.length, when, besides })
  },
  message_failing: ({ tries: count, error, replayed_at, replayed_by }, when) =>
    `${count === 1 ? 'its first try' : `each of its ${count} tries`} failed; it is tried again when it is delivered again${replayed_at === null ? '' : ` (${replayed_by ?? 'somebody'} replayed it at ${when(replayed_at)})`}${saying(error)}`,
  message_dead: ({ sensor, message_id, since, tries: count, error }, when) =>
    `it has been a dead letter since ${when(since)}, after ${tries(count)}${saying(error).replace(/\.$/, '')}. Replay it: servo sensors replay ${sensor} ${message_id}`,
  message_unknown: ({ sensor }) =>
    `it was never evaluated: it was not delivered, was refused, or arrived while ${sensor} was paused`,
  message_conflicts: ({ count }) =>
    `${count === 1 ? 'another body came' : `${count} other bodies came`} with the same id and did not count: servo conflicts`,
}
