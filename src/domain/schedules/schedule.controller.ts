import { Heap } from '../../lib/collections/heap.ts'
import { HOUR_MS } from '../../lib/time.ts'
import type { Controller, Decision, Observed } from '../../model/controller.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { assetDefinitions } from '../assets/asset-definitions.table.ts'
import { graphOf, type RecordedGraph } from '../assets/definitions.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { automationState } from '../automation/automation-state.table.ts'
import type { RequestRun } from '../automation/request-run.ts'
import { dynamicKeysOf } from '../partitions/dynamic-keys.ts'
import { isRowOf } from '../typed-rows.ts'
import { type ConditionAnswer, type Conditions, noConditions, type TickInQuestion } from './conditions.ts'
import { type Due, dueIn } from './deciding/due.ts'
import { type PreparedTick, prepareTick } from './deciding/prepared-tick.ts'
import { caughtUp, skipped } from './deciding/step-events.ts'
import { tickEvents } from './deciding/tick-events.ts'
import { catchupLimit, type GraphAtTick } from './deciding/work-of-tick.ts'
import { failuresInARow } from './failures.ts'
import { cadenceIfAny } from './moments/cadence-if-any.ts'
import { triggeredAlready } from './moments/triggered-spans.ts'
import { isOn, pauseOf } from './regime.ts'
import { type ScheduleRow, scheduleDefinitions } from './schedule-definitions.table.ts'
import { SchedulePaused } from './schedule-paused.event.ts'
import { type Regime, type ScheduleStateRow, scheduleState } from './schedule-state.table.ts'

/** While paused, the ticks of a minute or a second are recorded together this often. */
const PAUSED_TICKS_MS = HOUR_MS
/** Ticks decided at once: some tenths of a second. After a long outage of many schedules, others have their turn in between. */
const MAX_TICKS = 2_000

/** Fewer ticks that are due at once are decided in a moment, and not prepared. */
const MANY_DUE = 100

/** Soon after the code can be evaluated again. Until then nothing is decided of schedules that need it. */
const ASK_AGAIN_MS = 2_000

/** What is remembered about a schedule between two looks at it. */
interface Look {
  /** Everything up to here was decided by this process. */
  handled: number
  /** When it is looked at next; an entry of the heap with another time is out of date. */
  wakeAt: number | undefined
  /** When ticks of a pause were last recorded. */
  pauseRecordedAt?: number
  /** What was found due and is not decided yet, oldest first: the first of them waits for its condition. */
  steps: readonly Step[]
  prepared?: PreparedTick | undefined
}

/** What is to be recorded next of a schedule. */
type Step =
  | { readonly kind: 'due'; readonly definition: Readonly<ScheduleRow>; readonly due: Due }
  | { readonly kind: 'caught up'; readonly until: number; readonly insteadOf?: number }

interface ScheduleControllerOptions {
  readonly requestRun: RequestRun
  /** While it says no, nothing is decided and nothing is lost. */
  readonly mayDecide?: () => boolean
  readonly conditions?: Conditions | undefined
  /** So many ticks that are due at once are prepared. */
  readonly manyDue?: number
}

/**
 * Lets schedules tick. What is due follows from definitions, state and the clock alone, so a lost alarm is found at the next look; a tick
 * and the run it asks for are decided together. A tick with a condition waits for the answer, and with it all later ticks of its schedule.
 */
export function scheduleController(options: ScheduleControllerOptions): Controller {
  const { requestRun, mayDecide = () => true, conditions = noConditions, manyDue = MANY_DUE } = options
  const looks = new Map<string, Look>()
  const changed = new Set<string>()
  /** Schedules that wait for a condition. */
  const waiting = new Map<string, TickInQuestion>()
  const alarms = new Heap<{ readonly at: number; readonly id: string }>((a, b) => a.at < b.at)
  let graph: RecordedGraph | undefined

  /** The assets, and their partitions at one moment; many ticks are of the same. */
  const graphAt = (rows: Rows) => {
    graph ??= graphOf(rows.hot(assetDefinitions).all())
    const { graph: assets, mappings } = graph
    const moments = new Map<number, GraphAtTick>()
    return (tick: number): GraphAtTick => {
      let at = moments.get(tick)
      if (at === undefined) {
        at = { graph: assets, partitions: new GraphPartitions(mappings, { nowMs: tick, dynamicKeys: dynamicKeysOf(rows) }) }
        moments.set(tick, at)
      }
      return at
    }
  }

  const ask = (question: TickInQuestion, isRemoved: boolean): ConditionAnswer | undefined => {
    const { schedule_id, schedule_name } = question
    // A process that was asked before the removal may still answer. The code there is now knows nothing of the schedule.
    if (isRemoved && waiting.get(schedule_id)?.tick !== question.tick)
      return { verdict: 'removed', reason: `${schedule_name} was removed from the code before this tick was decided` }
    const answer = conditions.ask(question)
    if (answer === undefined) waiting.set(question.schedule_id, question)
    return answer
  }
  /** Nothing of the schedule waits any more, whether its answers were needed or not. */
  const noneWaits = (id: string): void => {
    waiting.delete(id)
    conditions.forget(id)
  }

  /** Its code cannot be asked. What is due then is found anew, by the rules of that moment: ticks that waited too long are missed. */
  const postpone = (id: string, look: Look, now: number): void => {
    look.steps = []
    look.handled = Number.NEGATIVE_INFINITY
    noneWaits(id)
    setAlarm(id, look, now + ASK_AGAIN_MS)
  }

  const setAlarm = (id: string, look: Look, at: number | undefined): void => {
    look.wakeAt = at
    if (at !== undefined) alarms.push({ at, id })
  }

  return {
    name: 'schedule',
    doc: 'Lets schedules tick, and asks for the runs of their ticks.',
    watches: [scheduleDefinitions, scheduleState, automationState, assetDefinitions],
    observe: (table, row) => {
      if (isRowOf(scheduleDefinitions, table, row) || isRowOf(scheduleState, table, row)) {
        changed.add(row.schedule_id)
        const look = looks.get(row.schedule_id)
        if (look !== undefined) look.prepared = undefined
      } else if (table === assetDefinitions) graph = undefined
    },
    decide({ rows, now }: Observed): readonly Decision[] {
      if (!mayDecide()) return []
      for (let first = alarms.peek(); first !== undefined && first.at <= now; first = alarms.peek()) {
        alarms.pop()
        if (looks.get(first.id)?.wakeAt === first.at) changed.add(first.id)
      }
      for (const [id, question] of waiting) if (conditions.ask(question) !== undefined) changed.add(id)
      if (changed.size === 0) return []
      const decided: Decision[] = []
      const partitionsAt = graphAt(rows)
      const lookAgain: string[] = []
      for (const id of changed) {
        if (decided.length >= MAX_TICKS) break
        changed.delete(id)
        const definition = rows.hot(scheduleDefinitions).get(id)
        if (definition === undefined) continue
        const look = looks.get(id) ?? { handled: Number.NEGATIVE_INFINITY, wakeAt: undefined, steps: [] }
        looks.set(id, look)
        const schedule = { rows, now, definition, state: rows.hot(scheduleState).get(id), look }
        const isRemoved = definition.removed_at !== null
        if (definition.has_condition && !isRemoved && !waiting.has(id) && conditions.isOut?.()) {
          postpone(id, look, now)
          continue
        }
        const selfPause = pauseAfterFailures(schedule)
        if (selfPause !== undefined) decided.push(selfPause)
        else {
          // What was found due before is decided first; what has become due since is found once that is folded.
          if (look.steps.length > 0) lookAgain.push(id)
          else look.steps = stepsDue(schedule, partitionsAt)
          let isUnavailable = false
          const asking = (question: TickInQuestion): ConditionAnswer | undefined => {
            const answer = ask(question, isRemoved)
            isUnavailable = answer?.verdict === 'unavailable'
            return answer
          }
          decided.push(...takeSteps(schedule, { partitionsAt, requestRun, ask: asking, most: MAX_TICKS - decided.length }))
          if (isUnavailable) {
            postpone(id, look, now)
            continue
          }
          if (look.steps.length === 0) noneWaits(id)
          else if (!waiting.has(id)) lookAgain.push(id)
        }
        setAlarm(id, look, nextLook(schedule))
      }
      if (decided.length > 0) for (const id of lookAgain) changed.add(id)
      return decided
    },
    prepare({ rows, now }: Observed): readonly Decision[] {
      if (!mayDecide() || looks.size < manyDue) return []
      const due = [...looks].filter(([, { wakeAt, steps }]) => wakeAt === now && steps.length === 0)
      if (due.length < manyDue) return []
      const at = graphAt(rows)(now)
      return due.slice(0, MAX_TICKS).flatMap(([id, look]) => {
        const definition = rows.hot(scheduleDefinitions).get(id)
        const state = rows.hot(scheduleState).get(id)
        look.prepared = definition && prepareTick({ tick: now, definition, state, at }, requestRun)
        return look.prepared === undefined ? [] : [look.prepared.events]
      })
    },
    wakeAt: () => (mayDecide() ? alarms.peek()?.at : undefined),
  }
}

interface Schedule {
  readonly rows: Rows
  readonly now: number
  readonly definition: Readonly<ScheduleRow>
  readonly state: Readonly<ScheduleStateRow> | undefined
  readonly look: Look
}

/** What became due and is not on record. */
function stepsDue(schedule: Schedule, partitionsAt: (tick: number) => GraphAtTick): Step[] {
  const { now, state, look } = schedule
  const past = state === undefined ? [] : state.undecided
  const present = presentRegime(schedule)
  const isPresentDue = present !== undefined && (present.pause === null || recordsPauseNow(schedule))
  const dueOf = dueInStretches(isPresentDue ? [...past, present] : past, schedule, partitionsAt)
  const stepsOf = (regime: Regime): Step[] =>
    (dueOf.get(regime) ?? []).map((due) => ({ kind: 'due', definition: regime.definition, due }))
  const steps = past.flatMap(stepsOf)
  const last = past.at(-1)
  if (last !== undefined) steps.push({ kind: 'caught up', until: last.until })
  // A clock that was ahead has decided more. That is on record before anything is decided anew, or the next process would not know.
  const decided = state?.decided_until ?? now
  if (isOn(schedule.definition) && decided > now) steps.push({ kind: 'caught up', until: now, insteadOf: decided })
  if (isPresentDue) {
    const due = stepsOf(present)
    if (present.pause !== null && due.length > 0) look.pauseRecordedAt = now
    look.handled = now
    steps.push(...due)
  }
  return steps
}

/** What is due in stretches that follow each other. The newest missed ticks run, so those of later stretches are chosen first. */
function dueInStretches(regimes: readonly Regime[], { now, state }: Schedule, partitionsAt: (tick: number) => GraphAtTick) {
  const dueOf = new Map<Regime, readonly Due[]>()
  let later: Due[] = []
  for (const regime of regimes.toReversed()) {
    const { definition, goesOn } = regime
    if (!goesOn) later = []
    const triggered = state === undefined ? [] : triggeredAlready(state, regime, now)
    const most = () => catchupLimit(definition, partitionsAt(now))
    const chosenLater = later.filter((due) => due.kind === 'run' && due.cause === 'catch_up').length
    const due = dueIn(regime, { now, most, chosenLater, isNewest: later.length === 0, triggered })
    later.push(...due)
    dueOf.set(regime, due)
  }
  return dueOf
}

interface Means {
  readonly partitionsAt: (tick: number) => GraphAtTick
  readonly requestRun: RequestRun
  readonly ask: (question: TickInQuestion) => ConditionAnswer | undefined
  /** How many steps are taken at most. */
  readonly most: number
}

/** Decides what is due, each step by itself, up to the first tick whose condition is not answered. */
function takeSteps(
  { definition: { schedule_id }, state, look }: Schedule,
  { partitionsAt, requestRun, ask, most }: Means,
): Decision[] {
  const decided: Decision[] = []
  const newRuns: string[] = []
  let open: Set<string> | undefined
  let clockTurn = state?.clock_turns ?? 0
  const eventsOf = (step: Step): readonly NewEvent[] | undefined => {
    if (step.kind === 'caught up') {
      if (step.insteadOf !== undefined) clockTurn += 1
      return [caughtUp(schedule_id, step)]
    }
    const { definition, due } = step
    if (due.kind === 'skip') return [skipped(definition, due, clockTurn)]
    const { tick, cause } = due
    const { schedule_name, row_version: definition_version, condition_timeout_ms: timeout_ms } = definition
    const question = { schedule_id, schedule_name, definition_version, tick, timeout_ms }
    const condition = definition.has_condition ? () => ask(question) : undefined
    const at = partitionsAt(tick)
    const { prepared } = look
    // What an earlier step has decided is not in the state yet.
    if (decided.length === 0 && cause === 'cron' && prepared?.isOf({ tick, graph: at.graph })) {
      if (prepared.run !== undefined) newRuns.push(prepared.run)
      return prepared.events
    }
    open ??= new Set([...(state?.open_runs ?? []), ...newRuns])
    return tickEvents({ definition, tick, cause, at, clockTurn, open, requestRun, condition })
  }
  for (const [index, step] of look.steps.entries()) {
    const made = index < most ? eventsOf(step) : undefined
    if (made === undefined) {
      look.steps = look.steps.slice(index)
      return decided
    }
    decided.push(made)
  }
  look.steps = []
  return decided
}

/** The ticks of the definition as it is that no process has decided about; undefined while the schedule is off. */
function presentRegime({ rows, now, definition, state, look }: Schedule): Regime | undefined {
  if (!isOn(definition)) return undefined
  const decided = state?.decided_until ?? definition.defined_at
  // A clock that was set back: time goes on from where it is now.
  if (look.handled > now) look.handled = now
  const from = Math.max(Math.min(decided, now), look.handled)
  const pause = pauseOf(rows, state)
  return { from, until: now, pause, catchesUp: pause === null, goesOn: false, definition }
}

/**
 * A pause is recorded tick by tick, but not more often than once an hour. If the schedule catches up when it is resumed, what becomes of the
 * ticks is known only then, and they are recorded once.
 */
function recordsPauseNow(schedule: Schedule): boolean {
  const { look, now, definition } = schedule
  if (definition.catch_up_on_resume) return false
  return look.pauseRecordedAt === undefined || now - look.pauseRecordedAt >= PAUSED_TICKS_MS || now < look.pauseRecordedAt
}

function nextLook(schedule: Schedule): number | undefined {
  const { rows, now, definition, state, look } = schedule
  if (!isOn(definition)) return undefined
  const next = cadenceIfAny(definition)?.after(now)
  if (next === undefined || pauseOf(rows, state) === null) return next
  const recordedAt = definition.catch_up_on_resume ? now : look.pauseRecordedAt
  return recordedAt === undefined ? next : Math.max(next, recordedAt + PAUSED_TICKS_MS)
}

function pauseAfterFailures({ definition, state }: Schedule): NewEvent | undefined {
  const { schedule_id, pause_after } = definition
  if (state === undefined || pause_after === null || state.status === 'PAUSED' || !isOn(definition)) return undefined
  const failed = failuresInARow(state)
  const latest = failed.at(-1)
  if (latest === undefined || failed.length < pause_after) return undefined
  const reason = `its last ${failed.length === 1 ? 'run' : `${failed.length} runs`} failed; the latest is ${latest.run_id}`
  return newEvent(
    SchedulePaused,
    { schedule_id, request_id: `failed:${latest.run_id}`, changed_by: 'servo', reason },
    { causation_id: state.row_version },
  )
}
