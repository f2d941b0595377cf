import { MINUTE_MS } from '../../lib/time.ts'
import type { Ordered } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { automationState, EVERYTHING } from '../automation/automation-state.table.ts'
import { raiseVersion } from '../typed-rows.ts'
import { addTriggered, keepMoments, sameMoments } from './moments/triggered-spans.ts'
import { type ScheduleRow, scheduleDefinitions } from './schedule-definitions.table.ts'
import { type Pause, type ScheduleStateRow, scheduleState } from './schedule-state.table.ts'

/** Why events that change when a schedule ticks follow the order in which they were recorded. */
export const changesRegime: Ordered = {
  with: [
    'ScheduleDefined',
    'ScheduleRemoved',
    'SchedulePaused',
    'ScheduleResumed',
    'ScheduleTicked',
    'ScheduleTicksSkipped',
    'ScheduleCaughtUp',
    'AutomationPaused',
    'AutomationResumed',
  ],
  when: (mine: { readonly schedule_id?: string }, other: { readonly schedule_id?: string }) =>
    mine.schedule_id === undefined || other.schedule_id === undefined || mine.schedule_id === other.schedule_id,
  why: 'The ticks that a definition or a pause applies to depend on what came before it.',
}

/** The state of a schedule for changing, made if this is the first that is heard of it. */
export function editScheduleState(rows: Rows, scheduleId: string, eventId: string): ScheduleStateRow {
  const known = rows.hot(scheduleState).edit(scheduleId)
  if (known !== undefined) {
    raiseVersion(known, eventId)
    return known
  }
  return rows.hot(scheduleState).insert({
    schedule_id: scheduleId,
    status: 'ACTIVE',
    status_changed_at: null,
    status_changed_by: null,
    status_reason: null,
    state_version: 0,
    paused_since: null,
    decided_until: null,
    clock_turns: null,
    undecided: [],
    asked_ahead: null,
    triggered: null,
    skipped: null,
    last_scheduled_for: null,
    last_tick_id: null,
    last_tick_event_id: null,
    last_tick_status: null,
    last_tick_reason: null,
    late_tick: null,
    late_tick_at: null,
    last_run_key: null,
    open_runs: [],
    recent_runs: [],
    counted_runs: [],
    row_version: eventId,
  })
}

/** Longer than a start takes, and than the clocks of machines differ. */
const LATE_MS = 5 * MINUTE_MS

/** Notes a tick that was decided long after its moment, because nothing ran when it was due. */
export function noteIfLate(state: ScheduleStateRow, tick: number, at: number): void {
  if (at - tick <= LATE_MS || tick < (state.late_tick ?? tick)) return
  state.late_tick_at = tick === state.late_tick ? Math.min(state.late_tick_at ?? at, at) : at
  state.late_tick = tick
}

/** Notes that somebody changed the schedule: who expected it to be as before is refused. */
export function raiseStateVersion(rows: Rows, scheduleId: string, eventId: string): ScheduleStateRow {
  const state = editScheduleState(rows, scheduleId, eventId)
  state.state_version += 1
  return state
}

/** Why a schedule does not tick, if it is paused. */
export function pauseOf(rows: Rows, state: Readonly<ScheduleStateRow> | undefined): Pause | null {
  const everything = rows.hot(automationState).get(EVERYTHING)
  const paused = state?.status === 'PAUSED' ? state : everything?.status === 'PAUSED' ? everything : undefined
  if (paused === undefined) return null
  return {
    since: state?.paused_since ?? paused.status_changed_at ?? 0,
    at: paused.status_changed_at,
    by: paused.status_changed_by,
    reason: paused.status_reason,
    everything: paused === everything,
  }
}

export const isOn = (definition: Readonly<ScheduleRow> | undefined): definition is Readonly<ScheduleRow> =>
  definition?.enabled === true && definition.removed_at === null

interface Change {
  readonly ids: readonly string[]
  readonly at: number
  readonly eventId: string
}

/**
 * Changes when schedules tick. The ticks that were due before the change and are not on record yet still follow the rules of before: their
 * stretch of time is kept until the schedule controller has decided about them.
 */
export function changeRegime(rows: Rows, { ids, at, eventId }: Change, change: () => void): void {
  const before = ids.map((id) => {
    const definition = rows.hot(scheduleDefinitions).get(id)
    const state = rows.hot(scheduleState).get(id)
    return { id, definition: definition && { ...definition }, pause: pauseOf(rows, state) }
  })
  change()
  for (const { id, definition, pause } of before) {
    const now = rows.hot(scheduleDefinitions).get(id)
    const state = editScheduleState(rows, id, eventId)
    const isPaused = pauseOf(rows, state) !== null
    const isSwitched = (pause !== null) !== isPaused
    if (!isSwitched && definition?.row_version === now?.row_version) continue
    const goesOn = !isSwitched && ticksAlike(definition, now)
    endStretch(state, { definition, pause, goesOn, isResumed: pause !== null && !isPaused && isOn(now), at })
    if (definition !== undefined && !sameMoments(definition, now)) keepMoments(state, definition)
    forgetAsked(state)
    if (!goesOn) state.paused_since = isPaused ? at : null
  }
}

/** Whether two definitions of a schedule that is on tick at the same moments, whatever else they say. */
function ticksAlike(one: Readonly<ScheduleRow> | undefined, other: Readonly<ScheduleRow> | undefined): boolean {
  const moments = ({ cron_expressions, timezone, start_at, end_at }: Readonly<ScheduleRow>): string =>
    JSON.stringify([cron_expressions, timezone, start_at, end_at])
  return isOn(one) && isOn(other) && moments(one) === moments(other)
}

interface Ended {
  readonly definition: Readonly<ScheduleRow> | undefined
  readonly pause: Pause | null
  /** Whether the schedule ticks on as before, and only what it asks for has changed. */
  readonly goesOn: boolean
  readonly isResumed: boolean
  readonly at: number
}

function endStretch(state: ScheduleStateRow, { definition, pause, goesOn, isResumed, at }: Ended): void {
  const decided = state.decided_until ?? at
  // A pause is decided by the definition at its end.
  if (goesOn && (pause !== null || at < decided)) return
  setDecided(state, at)
  if (isOn(definition) && decided < at) {
    const catchesUp = pause === null || (isResumed && definition.catch_up_on_resume)
    // Whether any tick lies in it is not asked here: that depends on what this machine knows of zones, and a fold must not.
    state.undecided = [...state.undecided, { from: decided, until: at, pause, catchesUp, goesOn, definition }]
    return
  }
  // A schedule that was off has no ticks after its last stretch.
  if (!isOn(definition)) return
  // The clock was ahead and was set back: the ticks beyond the change are decided anew when their time comes.
  const before = state.undecided.flatMap((regime) =>
    regime.from < at ? [{ ...regime, until: Math.min(regime.until, at) }] : [],
  )
  // Nothing lies between the last stretch and this change, so that the schedule does not go on from it as it was.
  state.undecided = before.map((regime, index) =>
    index === before.length - 1 ? { ...regime, goesOn: regime.goesOn && goesOn } : regime,
  )
}

/** Notes up to where ticks are on record: less far than before, if they are decided anew because a clock that was ahead was set back. */
export function setDecided(state: ScheduleStateRow, until: number): void {
  if (until < (state.decided_until ?? until)) state.clock_turns = (state.clock_turns ?? 0) + 1
  state.decided_until = until
}

/** Notes that a tick is new on record, and with it every tick before: in a stretch that is still to be decided, or in the present. */
export function noteDecided(rows: Rows, { scheduleId, tick, isTriggered, at, eventId }: DecidedTick): void {
  const known = rows.hot(scheduleState).get(scheduleId)
  const left = (known?.undecided ?? []).filter(({ until }) => tick <= until)
  const [oldest, ...later] = left
  if (oldest !== undefined && tick <= oldest.from) return
  const decided = known?.decided_until ?? tick
  const state = editScheduleState(rows, scheduleId, eventId)
  if (oldest !== undefined) {
    state.undecided = [{ ...oldest, from: tick }, ...later]
    const isPast = !sameMoments(oldest.definition, rows.hot(scheduleDefinitions).get(scheduleId))
    if (isTriggered) addTriggered(state, oldest.from, tick, isPast ? oldest.definition : undefined)
  } else {
    // What was decided beyond the present was decided by a clock that was ahead: time goes on from where the clock is now.
    setDecided(state, decided > at ? tick : Math.max(decided, tick))
    if (isTriggered) addTriggered(state, decided < tick ? decided : tick - 1, tick)
  }
  forgetAsked(state)
}

/** Notes a tick that somebody has triggered, if it is still to be recorded: then it is neither skipped nor caught up. */
export function noteAsked(rows: Rows, { scheduleId, tick, eventId }: RecordedTick): void {
  const known = rows.hot(scheduleState).get(scheduleId)
  if (known === undefined || !isUndecided(known, tick)) return
  editScheduleState(rows, scheduleId, eventId).asked_ahead = [...(known.asked_ahead ?? []), tick].sort((a, b) => a - b)
}

/** Forgets ticks that were asked for and have been passed by what is on record. */
export function forgetAsked(state: ScheduleStateRow): void {
  if (state.asked_ahead === null) return
  const left = state.asked_ahead.filter((tick) => isUndecided(state, tick))
  state.asked_ahead = left.length === 0 ? null : left
}

/** True if the tick lies in a stretch of time that is still to be decided, or in the present. */
const isUndecided = ({ decided_until, undecided }: Readonly<ScheduleStateRow>, tick: number): boolean =>
  tick > (decided_until ?? tick) || undecided.some(({ from, until }) => from < tick && tick <= until)

interface RecordedTick {
  readonly scheduleId: string
  /** The tick, or the last of several. */
  readonly tick: number
  readonly eventId: string
}

interface DecidedTick extends RecordedTick {
  readonly isTriggered: boolean
  readonly at: number
}
