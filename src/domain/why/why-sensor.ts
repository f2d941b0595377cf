import type { RunOfEvaluation } from '../../contract/delivery.ts'
import { toIso } from '../../lib/time.ts'
import { besidesRuns } from '../sensors/evaluation/besides-runs.ts'
import { nextPollFrom } from '../sensors/evaluation/poll-due.ts'
import { idsOfRuns } from '../sensors/evaluation/runs-of-evaluation.ts'
import { type Standstill, standstillOf, type WatchedSensor } from '../sensors/evaluation/standstill.ts'
import type { SensorEvalRow } from '../sensors/sensor-evals.table.ts'
import type { SensorMessageRow } from '../sensors/sensor-messages.table.ts'
import { isoOrNull } from './iso.ts'
import { type Reason, reason, type WhyAnswer } from './reasons.ts'

/** What is known of a sensor. */
export interface KnownSensor extends WatchedSensor {
  readonly now: number
  /** When this process last polled it, which may not be on record yet. */
  readonly polledAt?: number | undefined
  /** Why its code cannot be evaluated now. */
  readonly outage?: string | undefined
  /** The environment variables of which it needs one to let senders in, if the server has none. */
  readonly missingSecrets?: readonly string[]
  /** The latest evaluations, the newest first. */
  readonly evaluations: readonly Readonly<SensorEvalRow>[]
  /** What became of the runs that an evaluation asked for. */
  readonly runsOf: (evaluation: Readonly<SensorEvalRow>) => readonly RunOfEvaluation[]
}

export function whySensor(known: KnownSensor): WhyAnswer {
  const { definition, state, evaluations } = known
  const standing = standstillOf(known)
  const [latest] = evaluations
  const isPoll = definition.config.type === 'poll'
  const history =
    latest === undefined ? [notOnRecord(known, isPoll)] : evaluations.map((each) => reasonOfEvaluation(each, known))
  const errors = state?.consecutive_errors ?? 0
  const facts = { errors, error: state?.last_error ?? '', until: isPoll ? isoOrNull(state?.backoff_until) : null }
  const because = [
    ...(standing === undefined ? [] : [reasonOfStandstill(standing)]),
    ...unavailable(known),
    ...shutOut(known),
    ...(errors > 0 && standing === undefined ? [reason('backing_off', facts)] : []),
    ...history,
    ...around(known),
    ...resumeOf(standing, known),
  ]
  const made = latest !== undefined && known.runsOf(latest).some(({ created }) => created)
  const verdict = standing === undefined && made ? 'ran' : 'did_not_run'
  return { subject: subjectOf(known, null), verdict, at: null, timezone: null, because }
}

/** Polls that find nothing are recorded every two minutes, so a sensor without a record may have been polled. */
const notOnRecord = ({ definition, polledAt }: KnownSensor, isPoll: boolean): Reason =>
  polledAt === undefined
    ? reason('never_evaluated', { is_poll: isPoll, since: toIso(definition.created_at) })
    : reason('evaluation_no_new_data', {
        ...{ at: toIso(polledAt), until: null, count: 1, message_id: null },
        ...{ keys_added: [], keys_removed: [], cursor_moved: false },
      })

const subjectOf = ({ definition }: KnownSensor, message_id: string | null): WhyAnswer['subject'] => ({
  kind: 'sensor',
  id: definition.sensor_id,
  name: definition.sensor_name,
  partition: null,
  message_id,
})

/** Why its code is not evaluated. */
const unavailable = ({ outage }: KnownSensor): Reason[] =>
  outage === undefined ? [] : [reason('code_unavailable', { text: outage })]

/** Why senders are not let in. */
const shutOut = ({ missingSecrets = [] }: KnownSensor): Reason[] =>
  missingSecrets.length === 0 ? [] : [reason('secret_missing', { variables: missingSecrets })]

/** What comes next, and what a user has to do. */
function around(known: KnownSensor): Reason[] {
  const { definition, state, now } = known
  const next = nextPollFrom(known)
  const reset = state?.cursor_reset_at
  const { cursor_reset_by: by = null, cursor_reset_reason: why = null } = state ?? {}
  const dead = state?.dead_letters ?? 0
  return [
    ...(reset == null ? [] : [reason('cursor_reset', { at: toIso(reset), by, reason: why })]),
    ...(dead > 0 ? [reason('dead_letters', { sensor: definition.sensor_name, count: dead })] : []),
    ...(next === undefined ? [] : [reason('next_poll', { at: toIso(next), is_due: next <= now })]),
  ]
}

/** How a pause is ended. */
const resumeOf = (standing: Standstill | undefined, { definition }: KnownSensor): Reason[] => {
  if (standing?.code === 'automation_paused') return [reason('resume_with', { command: 'servo automation resume' })]
  if (standing?.code !== 'paused') return []
  return [reason('resume_with', { command: `servo sensors resume ${definition.sensor_name}` })]
}

/** Why a sensor is not evaluated at all. */
function reasonOfStandstill({ code, since, by, reason: why }: Standstill): Reason {
  if (code === 'removed') return reason('removed', { at: toIso(since ?? 0) })
  if (code === 'disabled') return reason('disabled', { since: toIso(since ?? 0) })
  return reason('paused', { by, at: isoOrNull(since), reason: why, is_everything: code === 'automation_paused' })
}

type ByStatus = { readonly [S in SensorEvalRow['status']]: (row: Readonly<SensorEvalRow>, known: KnownSensor) => Reason }

const NOTHING_BESIDES = { keys_added: [], keys_removed: [], cursor_moved: false } as const

/** As many runs of an evaluation are named. */
const NAMED_RUNS = 5

const reasonsOfEvaluations: ByStatus = {
  triggered: (row, known) =>
    reason('evaluation_triggered', {
      at: toIso(row.evaluated_at),
      message_id: row.message_id,
      by: row.requested_by,
      run_ids: idsOfRuns(known.runsOf(row)).slice(0, NAMED_RUNS),
      runs: known.runsOf(row).slice(0, NAMED_RUNS),
      count: row.run_keys.length,
      ...besidesRuns(row),
    }),
  no_new_data: (row) =>
    reason('evaluation_no_new_data', {
      at: toIso(row.evaluated_at),
      until: isoOrNull(row.evaluated_until),
      count: row.eval_count,
      message_id: row.message_id,
      ...besidesRuns(row),
    }),
  error: (row) =>
    reason('evaluation_error', {
      at: toIso(row.evaluated_at),
      message_id: row.message_id,
      try: row.try,
      error: row.error ?? '',
    }),
  skipped_stale_cursor: (row) => reason('evaluation_stale', { at: toIso(row.evaluated_at) }),
  skipped_duplicate: (row) => reason('evaluation_duplicate', { at: toIso(row.evaluated_at), message_id: row.message_id }),
}

const reasonOfEvaluation = (row: Readonly<SensorEvalRow>, known: KnownSensor): Reason =>
  reasonsOfEvaluations[row.status](row, known)

/** A message to a sensor, and what is on record of it. */
export interface KnownMessage {
  readonly message_id: string
  readonly row: Readonly<SensorMessageRow> | undefined
  /** How many other bodies came under its id. */
  readonly conflicts: number
}

/** What became of a message. `evaluations` of the sensor are those of the message. */
export function whyMessage(known: KnownSensor, { message_id, row, conflicts }: KnownMessage): WhyAnswer {
  const standing = standstillOf(known)
  const accepted = known.evaluations.find(({ eval_id }) => eval_id === row?.accepted_eval_id)
  // Why the last try of a message failed is said of the message.
  const told = row === undefined || row.status === 'accepted' ? accepted : known.evaluations[0]
  const others = known.evaluations.filter((each) => each !== told).map((each) => reasonOfEvaluation(each, known))
  const because = [
    becameOf(known, message_id, row, accepted),
    ...(conflicts > 0 ? [reason('message_conflicts', { count: conflicts })] : []),
    ...others,
    ...(row?.status !== 'accepted' && standing !== undefined ? [reasonOfStandstill(standing)] : []),
    ...(row?.status === 'accepted' ? [] : unavailable(known)),
    ...(row === undefined ? shutOut(known) : []),
  ]
  const made = accepted === undefined || known.runsOf(accepted).some(({ created }) => created)
  const verdict = row?.status === 'accepted' && made ? 'ran' : 'did_not_run'
  return { subject: subjectOf(known, message_id), verdict, at: null, timezone: null, because }
}

function becameOf(
  { definition: { sensor_name: sensor }, runsOf }: KnownSensor,
  message_id: string,
  row: KnownMessage['row'],
  accepted: Readonly<SensorEvalRow> | undefined,
): Reason {
  if (row === undefined) return reason('message_unknown', { sensor })
  const { tries, last_error, accepted_eval_id, accepted_at, dead_since, replayed_by } = row
  const error = last_error ?? ''
  if (row.status === 'accepted') {
    const runs = accepted === undefined ? null : runsOf(accepted)
    const besides = accepted === undefined ? NOTHING_BESIDES : besidesRuns(accepted)
    const facts = { at: isoOrNull(accepted_at), tries, eval_id: accepted_eval_id ?? '', ...besides }
    return reason('message_accepted', { ...facts, runs, run_ids: runs && idsOfRuns(runs) })
  }
  if (row.status === 'dead') return reason('message_dead', { sensor, message_id, since: isoOrNull(dead_since), tries, error })
  return reason('message_failing', { tries, error, replayed_at: isoOrNull(row.replayed_at), replayed_by })
}
