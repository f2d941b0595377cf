import { z } from 'zod'
import { scheduleStatuses, tickStatuses } from '../../contract/automation-statuses.ts'
import { scheduleChanges, scheduleDefinition } from '../../contract/schedule.ts'
import type { RunState } from '../../domain/runs/runs.table.ts'
import type { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import type { scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import type { scheduleTicks, tickCauses } from '../../domain/schedules/schedule-ticks.table.ts'
import { id, timestamp } from '../../model/envelope.ts'
import type { WireRow } from '../wire-row.ts'
import { expectedVersion } from './expected-version.ts'

/** A request that is sent again under the same id changes nothing again. */
const request = { request_id: id.optional() }

/** What only the code of a project can say. */
const onlyInCode = { file: true, line: true, renamed_from: true, has_condition: true, condition_timeout_ms: true } as const

export const newScheduleBody = scheduleDefinition.omit(onlyInCode).extend(request).strict()
export type NewScheduleBody = z.infer<typeof newScheduleBody>

export const scheduleChangesBody = scheduleChanges.omit(onlyInCode).extend(request).strict()
export type ScheduleChangesBody = z.infer<typeof scheduleChangesBody>

export const switchBody = z.object({ reason: z.string().max(4_096).optional(), ...request }).strict()
export type SwitchBody = z.infer<typeof switchBody>

export const requestBody = z.object(request).strict()
export type RequestBody = z.infer<typeof requestBody>

/** A removal has no body. */
export const removalQuery = requestBody.extend(expectedVersion.shape)

export const triggerBody = z
  .object({
    /** The partitions to run, as in a request for a run, instead of those of the schedule. */
    partitions: z.array(id).min(1).max(100_000).optional(),
    /** The moment of the tick, not later than now: of an asset with windows of time, the window that had just closed then. */
    scheduled_for: timestamp.optional(),
    ...request,
  })
  .strict()
export type TriggerBody = z.infer<typeof triggerBody>

export const catchupBody = z
  .object({
    /** Shows which ticks would be requested, and records nothing. */
    dry_run: z.boolean().optional(),
    ticks: z
      .array(z.object({ schedule_id: id, scheduled_for: timestamp }))
      .min(1)
      .max(1_000),
    ...request,
  })
  .strict()
export type CatchupBody = z.infer<typeof catchupBody>

const pageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
})

export const scheduleListQuery = pageQuery.extend({ status: z.enum(scheduleStatuses).optional() })
export type ScheduleListQuery = z.infer<typeof scheduleListQuery>

export const tickQuery = pageQuery.extend({
  status: z.enum(tickStatuses).optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
})
export type TickQuery = z.infer<typeof tickQuery>

export type WireScheduleDefinition = WireRow<typeof scheduleDefinitions>
export type WireScheduleState = Omit<WireRow<typeof scheduleState>, 'undecided' | 'asked_ahead' | 'triggered' | 'skipped'>
export type WireTick = WireRow<typeof scheduleTicks>

/** A schedule as it is now. */
export interface ScheduleDetail {
  readonly definition: WireScheduleDefinition
  readonly state: WireScheduleState | null
  readonly status: (typeof scheduleStatuses)[number]
  /** Why it does not tick, in words; null while it does. */
  readonly status_reason: string | null
  /** The next ticks, while it ticks. */
  readonly next_ticks: readonly string[]
  /** How many missed ticks are caught up at most: what it says or, if it does not, 3 if what it selects has partitions and otherwise 1. */
  readonly catchup_limit: number
  /** Its last run, whether its cron or a user asked for it; null if it has none. */
  readonly last_run: LastRun | null
}

export interface LastRun {
  readonly run_id: string
  readonly state: RunState
  readonly requested_at: string
  /** Null, as is what follows, if the tick is not on record any more. */
  readonly cause: (typeof tickCauses)[number] | null
  /** Who asked, if its cron did not. */
  readonly requested_by: string | null
  /** The moment of its tick. */
  readonly scheduled_for: string | null
  readonly partitions: readonly string[] | null
}

export interface SchedulePage {
  readonly schedules: readonly ScheduleDetail[]
  readonly next_cursor: string | null
}

export interface TickPage {
  readonly ticks: readonly WireTick[]
  readonly next_cursor: string | null
}

export interface AllTicksPage {
  /** Each with the present name of its schedule; null if that is not on record any more. */
  readonly ticks: readonly (WireTick & { readonly schedule_name: string | null })[]
  readonly next_cursor: string | null
}

/** What became of a request that changes a schedule. */
export interface AcceptedSchedule {
  readonly schedule_id: string
  readonly schedule_name: string
  readonly message: string
  /** Null when nothing was new. */
  readonly accepted_event_id: string | null
  readonly accepted_at: string
  /** The id of the request. */
  readonly correlation_id: string
}

export interface AcceptedTrigger extends AcceptedSchedule {
  readonly tick_id: string
  readonly run_id: string
  /** False when the same request had been made before. */
  readonly created: boolean
  /** The moment of the tick, and the partitions that it runs; null for assets without. */
  readonly scheduled_for: string
  readonly partitions: readonly string[] | null
}

interface AskedTick {
  readonly schedule_id: string
  readonly scheduled_for: string
}

export interface AcceptedCatchup {
  readonly dry_run: boolean
  /** `run_id` is null in a dry run, `partitions` for assets without. */
  readonly accepted: readonly (AskedTick & {
    readonly run_id: string | null
    readonly partitions: readonly string[] | null
  })[]
  readonly refused: readonly (AskedTick & { readonly code: string; readonly reason: string })[]
}

export interface AcceptedSwitch {
  readonly status: 'active' | 'paused'
  readonly message: string
  readonly accepted_event_id: string | null
}

export interface AutomationStatus {
  readonly status: 'active' | 'paused'
  readonly changed_by: string | null
  readonly changed_at: string | null
  readonly reason: string | null
  /** False if nothing ticks and no sensor is evaluated whatever the status: the server was started without automation, or none runs. */
  readonly is_on: boolean
  /** Why sensors and conditions of schedules wait: no code of the project can be evaluated, such as when it cannot be loaded. Null while it can. */
  readonly outage: string | null
}

/**
 * Questions and commands about schedules, which are named by their id or their name. A change that names the `state_version` that it
 * expects is refused if the schedule has another.
 */
export interface SchedulesApi {
  list(query: ScheduleListQuery): Promise<SchedulePage>
  get(idOrName: string): Promise<ScheduleDetail>
  /** The newest first. */
  ticks(idOrName: string, query: TickQuery): Promise<TickPage>
  /** The same of all schedules. */
  allTicks(query: TickQuery): Promise<AllTicksPage>
  create(body: NewScheduleBody, user: string): Promise<AcceptedSchedule>
  update(idOrName: string, body: ScheduleChangesBody, user: string, expected?: number): Promise<AcceptedSchedule>
  remove(idOrName: string, body: RequestBody, user: string, expected?: number): Promise<AcceptedSchedule>
  pause(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSchedule>
  resume(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSchedule>
  trigger(idOrName: string, body: TriggerBody, user: string, expected?: number): Promise<AcceptedTrigger>
  catchUp(body: CatchupBody, user: string): Promise<AcceptedCatchup>
  automation(): Promise<AutomationStatus>
  switchAutomation(status: 'active' | 'paused', body: SwitchBody, user: string): Promise<AcceptedSwitch>
}
