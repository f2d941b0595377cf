import type { NewEvent } from '../../../model/event.ts'
import type { RequestRun } from '../../automation/request-run.ts'
import type { ScheduleRow } from '../schedule-definitions.table.ts'
import type { ScheduleStateRow } from '../schedule-state.table.ts'
import { tickEvents } from './tick-events.ts'
import { type GraphAtTick, selectsPartitions } from './work-of-tick.ts'

/** What the events of a tick follow from. */
export interface TickContext {
  readonly tick: number
  readonly definition: Readonly<ScheduleRow>
  readonly state: Readonly<ScheduleStateRow> | undefined
  readonly at: GraphAtTick
}

/**
 * A tick that was worked out shortly before its time. It counts only if nothing that it follows from has changed: the controller forgets it
 * when it is shown a row of its schedule. Versions of rows do not tell: those of a clock that was ahead stay the largest.
 */
export interface PreparedTick {
  readonly events: readonly NewEvent[]
  /** The run that it asks for, if it asks for one. */
  readonly run: string | undefined
  /** False for another moment, and if assets were declared since. */
  isOf(now: { readonly tick: number; readonly graph: GraphAtTick['graph'] }): boolean
}

/**
 * Works out a tick ahead of its time. Not if its code is asked, and not if what it selects has partitions: which there are may change with
 * tables that schedules do not watch.
 */
export function prepareTick(context: TickContext, requestRun: RequestRun): PreparedTick | undefined {
  const { tick, definition, state, at } = context
  if (definition.has_condition || selectsPartitions(definition, at)) return undefined
  const open = new Set(state?.open_runs ?? [])
  const before = open.size
  const events = tickEvents({ definition, tick, cause: 'cron', at, clockTurn: state?.clock_turns ?? 0, open, requestRun })
  if (events === undefined) return undefined
  return {
    events,
    run: open.size > before ? [...open].at(-1) : undefined,
    isOf: (now) => now.tick === tick && now.graph === at.graph,
  }
}
