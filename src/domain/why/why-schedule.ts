import { Cadence } from '../../cron/cadence.ts'
import { toIso } from '../../lib/time.ts'
import type { Row } from '../../model/table.ts'
import type { RunState } from '../runs/runs.table.ts'
import { cadenceIfAny } from '../schedules/moments/cadence-if-any.ts'
import type { ScheduleRow } from '../schedules/schedule-definitions.table.ts'
import type { Pause, ScheduleStateRow } from '../schedules/schedule-state.table.ts'
import type { ReasonFacts, scheduleTicks, TickReasonCode } from '../schedules/schedule-ticks.table.ts'
import { isoOrNull } from './iso.ts'
import type { AskedMoment } from './moment-asked.ts'
import { type Reason, reason, type WhyAnswer, type WhyVerdict } from './reasons.ts'

export type TickRow = Readonly<Row<typeof scheduleTicks>>

/** A run that a tick asked for or that was in its way. */
export interface RunOfTick {
  readonly run_id: string
  readonly state: RunState | null
  /** The moment of its tick, if a tick asked for it. */
  readonly scheduled_for: number | null
}

/** What is known of a schedule. */
export interface KnownSchedule {
  readonly definition: Readonly<ScheduleRow>
  readonly state: Readonly<ScheduleStateRow> | undefined
  /** Why it does not tick now, if it is paused. */
  readonly pause: Pause | null
  /** False if the server was started without automation. */
  readonly isOn?: boolean
  /** Why no code of the project can be evaluated now. */
  readonly outage?: string | undefined
  readonly now: number
}

/** The moment in question, and what is on record of it. */
export interface MomentOfSchedule {
  /** Undefined if the schedule was not due yet. */
  readonly at: number | undefined
  readonly tick: TickRow | undefined
  /** The run of the tick, or the run in its way. */
  readonly run: RunOfTick | undefined
  /** The last tick that somebody asked for since, if that is in question. */
  readonly manual?: ManualTick | undefined
}

/** A tick that somebody asked for. */
export interface ManualTick {
  readonly at: number
  readonly by: string | null
  readonly run: RunOfTick | undefined
}

/** The latest moment at which a schedule was due, by its record or by its cadence; undefined if it was not due since it was declared. */
export function latestDue({ definition, state, now }: KnownSchedule): number | undefined {
  const until = Math.min(now, definition.removed_at ?? now)
  const recorded = state?.last_scheduled_for ?? 0
  const due = cadenceIfAny(definition)?.until(until) ?? 0
  const latest = Math.max(due, recorded <= now ? recorded : 0)
  return latest > definition.created_at ? latest : undefined
}

/** The first tick in a span that a user named, or its beginning if there is none. */
export function tickWithin(definition: Readonly<ScheduleRow>, { from, to }: AskedMoment): number {
  const tick = cadenceIfAny(definition)?.after(from - 1)
  return tick !== undefined && tick <= to ? tick : from
}

/** The run that the reason of a tick is about. */
export const runBehind = (tick: TickRow): string | undefined => tick.run_id ?? tick.reason_facts?.run_id

export function whySchedule(known: KnownSchedule, { at, tick, run, manual }: MomentOfSchedule): WhyAnswer {
  const { definition, now } = known
  const { schedule_id, schedule_name, timezone, created_at } = definition
  const standing = standingOf(known)
  const [verdict, because]: [WhyVerdict, Reason[]] =
    at === undefined
      ? [manual === undefined ? 'did_not_run' : 'ran', [reason('never_due', { since: toIso(created_at) })]]
      : tick !== undefined
        ? recorded(tick, run)
        : at > now
          ? ahead(known, at, standing)
          : unrecorded(known, at)
  const said = new Set(because.map(({ code }) => code))
  const further = standing ?? nextTick(known)
  const byHand = manual === undefined ? [] : [triggeredByHand(manual)]
  // A schedule that was never due and that somebody triggered ran because of that.
  const ordered = at === undefined ? [...byHand, ...because] : [...because, ...byHand]
  return {
    subject: { kind: 'schedule', id: schedule_id, name: schedule_name, partition: null, message_id: null },
    verdict,
    at: isoOrNull(at),
    timezone,
    because: [...ordered, ...(said.has(further.code) ? [] : [further]), ...resumeOf(known)],
  }
}

/** Why it does not tick now. */
export function standingOf({
  definition,
  pause,
  isOn,
}: Pick<KnownSchedule, 'definition' | 'pause' | 'isOn'>): Reason | undefined {
  if (definition.removed_at !== null) return reason('removed', { at: toIso(definition.removed_at) })
  if (!definition.enabled) return reason('disabled', { since: toIso(definition.defined_at) })
  if (pause !== null) return paused(pause)
  return isOn === false ? reason('automation_off', {}) : undefined
}

/** How the pause that lasts now is ended. */
function resumeOf({ definition, pause }: KnownSchedule): Reason[] {
  if (pause === null || definition.removed_at !== null || !definition.enabled) return []
  return [
    reason('resume_with', {
      command: pause.everything ? 'servo automation resume' : `servo schedules resume ${definition.schedule_name}`,
    }),
  ]
}

const triggeredByHand = ({ at, by, run }: ManualTick): Reason =>
  reason('triggered_by_hand', { at: toIso(at), by, run_id: run?.run_id ?? null, state: run?.state ?? null })

const paused = ({ by, at, reason: why, everything }: Pause): Reason =>
  reason('paused', { by, at: isoOrNull(at), reason: why, is_everything: everything })

function nextTick({ definition, now }: Pick<KnownSchedule, 'definition' | 'now'>): Reason {
  const next = cadenceIfAny(definition)?.after(now)
  return next === undefined
    ? reason('no_next_tick', { end_at: isoOrNull(definition.end_at) })
    : reason('next_tick', { at: toIso(next) })
}

function recorded(tick: TickRow, run: RunOfTick | undefined): [WhyVerdict, Reason[]] {
  const count = tick.tick_count ?? 1
  const together =
    tick.scheduled_for !== null && tick.scheduled_until !== null && tick.scheduled_for !== tick.scheduled_until
      ? [reason('skipped_together', { first: toIso(tick.scheduled_for), last: toIso(tick.scheduled_until), count })]
      : []
  if (tick.status === 'triggered') {
    const { cause, requested_by: by, evaluated_at } = tick
    const facts = { run_id: run?.run_id ?? tick.run_id, state: run?.state ?? null, cause: cause ?? 'cron', by }
    const isByClock = facts.cause === 'cron' && tick.scheduled_for !== null && evaluated_at !== null
    const lateness_ms = isByClock ? Math.max(0, evaluated_at - tick.scheduled_for) : null
    return ['ran', [reason('triggered', { ...facts, decided_at: isoOrNull(evaluated_at), lateness_ms })]]
  }
  return ['did_not_run', [reasonOfTick(tick, run), ...together]]
}

type ByCode = { readonly [C in TickReasonCode]: (tick: TickRow, facts: ReasonFacts, run: RunOfTick | undefined) => Reason }

const text = (tick: TickRow): { text: string } => ({ text: tick.reason ?? '' })

const reasonsOfTicks: ByCode = {
  paused: (_, { paused_by, paused_at, pause_reason, is_everything }) =>
    reason('paused', {
      by: paused_by ?? null,
      at: paused_at ?? null,
      reason: pause_reason ?? null,
      is_everything: is_everything ?? false,
    }),
  catchup_window: ({ evaluated_at }, { window_minutes }) =>
    reason('catchup_window', { window_minutes: window_minutes ?? null, decided_at: isoOrNull(evaluated_at) }),
  catchup_limit: ({ evaluated_at }, { most }) =>
    reason('catchup_limit', { most: most ?? null, decided_at: isoOrNull(evaluated_at) }),
  overlap: (_, { run_id }, run) =>
    reason('overlap', {
      run_id: run_id ?? null,
      scheduled_for: isoOrNull(run?.scheduled_for),
      state: run?.state ?? null,
    }),
  no_window: (tick) => reason('no_window', text(tick)),
  condition: (tick) => reason('condition', text(tick)),
  condition_error: (tick) => reason('condition_error', text(tick)),
  bad_selection: (tick) => reason('bad_selection', text(tick)),
  code_removed: (tick) => reason('code_removed', text(tick)),
}

const isTickReason = (code: string | null): code is TickReasonCode => code !== null && Object.hasOwn(reasonsOfTicks, code)

function reasonOfTick(tick: TickRow, run: RunOfTick | undefined): Reason {
  const { reason_code: code } = tick
  if (isTickReason(code)) return reasonsOfTicks[code](tick, tick.reason_facts ?? {}, run)
  return reason('other_reason', { code, text: tick.reason ?? 'no reason is on record' })
}

function ahead(known: KnownSchedule, at: number, standing: Reason | undefined): [WhyVerdict, Reason[]] {
  if (cadenceIfAny(known.definition)?.has(at) !== true) return ['will_not_run', notDue(known, at)]
  return standing === undefined ? ['is_due', []] : ['will_not_run', [standing]]
}

/** Why a moment that has passed has no record. */
function unrecorded(known: KnownSchedule, at: number): [WhyVerdict, Reason[]] {
  const { definition, state, pause, outage } = known
  const { created_at, defined_at, removed_at, enabled } = definition
  const why = (): Reason[] => {
    if (at < created_at) {
      const undeclared = reason('not_declared_yet', { created_at: toIso(created_at) })
      return isOnCadence(definition, at) ? [undeclared] : [...notDue(known, at), undeclared]
    }
    if (removed_at !== null && at > removed_at) return [reason('removed', { at: toIso(removed_at) })]
    const changed =
      at <= defined_at && defined_at > created_at ? [reason('changed_since', { defined_at: toIso(defined_at) })] : []
    if (cadenceIfAny(definition)?.has(at) !== true) return [...notDue(known, at), ...changed]
    const earlier = state?.undecided.find((regime) => at > regime.from && at <= regime.until)
    if (earlier?.pause != null && !earlier.catchesUp) return [paused(earlier.pause)]
    if (enabled && pause !== null && at > pause.since) return [paused(pause)]
    if (changed.length > 0) return changed
    if (!enabled) return [reason('disabled', { since: toIso(defined_at) })]
    if (outage !== undefined) return [reason('code_unavailable', { text: outage })]
    return [reason('undecided', { decided_until: isoOrNull(state?.decided_until) })]
  }
  return ['did_not_run', why()]
}

/** True if it would tick then if it had neither start nor end. */
const isOnCadence = (definition: Readonly<ScheduleRow>, at: number): boolean =>
  cadenceIfAny(definition) !== undefined && new Cadence({ ...definition, start_at: null, end_at: null }).has(at)

function notDue({ definition }: KnownSchedule, at: number): Reason[] {
  const { start_at, end_at } = definition
  const cadence = cadenceIfAny(definition)
  if (isOnCadence(definition, at)) {
    if (start_at !== null && at < start_at) return [reason('before_start', { start_at: toIso(start_at) })]
    if (end_at !== null && at > end_at) return [reason('after_end', { end_at: toIso(end_at) })]
  }
  return [reason('not_due', { before: isoOrNull(cadence?.until(at)), after: isoOrNull(cadence?.after(at)) })]
}
