import { z } from 'zod'
import { scheduleStatuses, tickStatuses } from '../../contract/automation-statuses.ts'
import { scheduleChanges, scheduleDefinition } from '../../contract/schedule.ts'
import { runStates } from '../../domain/runs/runs.table.ts'
import { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { scheduleState } from '../../domain/schedules/schedule-state.table.ts'
import { type ReasonFacts, scheduleTicks, tickCauses } from '../../domain/schedules/schedule-ticks.table.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { rowSchema } from '../answers/row-schema.ts'
import { acceptance, moment, named, nextCursor, type Told, typedAs, whole } from '../answers/told.ts'
import { listQuery, whenQuery } from '../request/list-query.ts'
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

export const scheduleListQuery = listQuery.extend({
  status: z.enum(scheduleStatuses).optional().describe('Only schedules of this status.'),
})
export type ScheduleListQuery = z.infer<typeof scheduleListQuery>

export const tickQuery = listQuery.extend({
  status: z.enum(tickStatuses).optional().describe('Only ticks of this status.'),
  ...whenQuery('scheduled for'),
})
export type TickQuery = z.infer<typeof tickQuery>

const wireScheduleDefinition = named('ScheduleDefinition', rowSchema(scheduleDefinitions, {}))
export type WireScheduleDefinition = Told<typeof wireScheduleDefinition>

/** How its ticks are decided is its own business. */
const internal = { undecided: true, asked_ahead: true, triggered: true, skipped: true } as const
const opaque = { undecided: z.any(), asked_ahead: z.any(), triggered: z.any(), skipped: z.any() }

const wireScheduleState = named(
  'ScheduleState',
  rowSchema(scheduleState, {
    ...opaque,
    recent_runs: z.array(
      z.object({
        run_id: z.string(),
        run_key: z.string().exactOptional(),
        requested_at: z.number().describe('Milliseconds since 1970.'),
        state: z.enum(runStates),
      }),
    ),
    counted_runs: z.array(z.string()),
  }).omit(internal),
)
export type WireScheduleState = Told<typeof wireScheduleState>

const wireTick = named(
  'Tick',
  rowSchema(scheduleTicks, { reason_facts: typedAs<ReasonFacts>(z.record(z.string(), z.unknown())) }),
)
export type WireTick = Told<typeof wireTick>

const lastRun = named(
  'LastRunOfSchedule',
  z.object({
    run_id: z.string(),
    state: z.enum(runStates),
    requested_at: moment,
    cause: z.enum(tickCauses).nullable().describe('Null, as is what follows, if the tick is not on record any more.'),
    requested_by: z.string().nullable().describe('Who asked, if its cron did not.'),
    scheduled_for: moment.nullable().describe('The moment of its tick.'),
    partitions: z.array(z.string()).nullable(),
  }),
)
export type LastRun = Told<typeof lastRun>

/** A schedule as it is now. */
export const scheduleDetail = named(
  'Schedule',
  z.object({
    definition: wireScheduleDefinition,
    state: wireScheduleState.nullable(),
    status: z.enum(scheduleStatuses),
    status_reason: z.string().nullable().describe('Why it does not tick, in words; null while it does.'),
    next_ticks: z.array(moment).describe('The next ticks, while it ticks.'),
    catchup_limit: whole.describe(
      'How many missed ticks are caught up at most: what it says or, if it does not, 3 if what it selects has partitions and otherwise 1.',
    ),
    last_run: lastRun.nullable().describe('Its last run, whether its cron or a user asked for it; null if it has none.'),
  }),
)
export type ScheduleDetail = Told<typeof scheduleDetail>

export const schedulePage = named('SchedulePage', z.object({ schedules: z.array(scheduleDetail), ...nextCursor }))
export type SchedulePage = Told<typeof schedulePage>

export const tickPage = named('TickPage', z.object({ ticks: z.array(wireTick), ...nextCursor }))
export type TickPage = Told<typeof tickPage>

export const allTicksPage = named(
  'TickOfAnyPage',
  z.object({
    ticks: z.array(
      wireTick.extend({
        schedule_name: z
          .string()
          .nullable()
          .describe('The present name of its schedule; null if that is not on record any more.'),
      }),
    ),
    ...nextCursor,
  }),
)
export type AllTicksPage = Told<typeof allTicksPage>

/** What became of a request that changes a schedule. */
export const acceptedSchedule = named(
  'AcceptedSchedule',
  z.object({ schedule_id: z.string(), schedule_name: z.string(), ...acceptance }),
)
export type AcceptedSchedule = Told<typeof acceptedSchedule>

export const acceptedTrigger = named(
  'AcceptedTrigger',
  acceptedSchedule.extend({
    tick_id: z.string(),
    run_id: z.string(),
    created: z.boolean().describe('False when the same request had been made before.'),
    scheduled_for: moment.describe('The moment of the tick.'),
    partitions: z.array(z.string()).nullable().describe('The partitions that it runs; null for assets without.'),
  }),
)
export type AcceptedTrigger = Told<typeof acceptedTrigger>

const askedTick = { schedule_id: z.string(), scheduled_for: moment }

export const acceptedCatchup = named(
  'AcceptedCatchup',
  z.object({
    dry_run: z.boolean(),
    accepted: z.array(
      z.object({
        ...askedTick,
        run_id: z.string().nullable().describe('Null in a dry run.'),
        partitions: z.array(z.string()).nullable().describe('Null for assets without.'),
      }),
    ),
    refused: z.array(z.object({ ...askedTick, code: z.string(), reason: z.string() })),
  }),
)
export type AcceptedCatchup = Told<typeof acceptedCatchup>

const switched = z.enum(['active', 'paused'])

export const acceptedSwitch = named(
  'AcceptedSwitch',
  z.object({ status: switched, message: z.string(), accepted_event_id: z.string().nullable() }),
)
export type AcceptedSwitch = Told<typeof acceptedSwitch>

export const automationStatus = named(
  'AutomationStatus',
  z.object({
    status: switched,
    changed_by: z.string().nullable(),
    changed_at: moment.nullable(),
    reason: z.string().nullable(),
    is_on: z
      .boolean()
      .describe(
        'False if nothing ticks and no sensor is evaluated whatever the status: the server was started without automation, or none runs.',
      ),
    outage: z
      .string()
      .nullable()
      .describe(
        'Why sensors and conditions of schedules wait: no code of the project can be evaluated, such as when it cannot be loaded. Null while it can.',
      ),
  }),
)
export type AutomationStatus = Told<typeof automationStatus>

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
