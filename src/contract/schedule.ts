import { z } from 'zod'
import { hasNoControlCharacters } from '../lib/text/control-characters.ts'
import { overlapPolicies } from './overlap-policies.ts'

const line = (most: number) => z.string().min(1).max(most).refine(hasNoControlCharacters, 'must not contain control characters')
const name = line(255)
/** A selection, a partition or an expression: text of one line, which ticks and run requests carry as it is. */
const text = line(512)
const instant = z.iso.datetime({ offset: false })

/** Each field, without the value it has when it is absent. */
const fields = {
  name,
  description: z.string().max(16_384).nullish(),
  /** It ticks whenever any of them does. */
  cron_expressions: z.array(text).min(1).max(100),
  timezone: text,
  /** No tick lies before the first or after the second; each may be absent. */
  start_at: instant.nullish(),
  end_at: instant.nullish(),
  asset_selection: z.array(text).min(1).max(10_000),
  /** Absent: the window of time that has just closed, or all keys where there are no windows. */
  partition_selection: z.array(text).min(1).max(100_000).nullish(),
  /** How many windows to go back from the one that just closed. Default: 0. */
  partition_offset: z.number().int().min(0).max(100_000),
  /** How old a missed tick may be and still run. */
  catchup_window_minutes: z.number().int().min(0).max(5_256_000),
  /** How many missed ticks run at most. Absent: 3 if what it selects has partitions, otherwise 1. */
  max_catchup_ticks: z.number().int().min(0).max(10_000).nullish(),
  catch_up_on_resume: z.boolean(),
  /** What a tick does while a run of an earlier tick is unfinished. Absent: the runs go on side by side. */
  overlap: z.enum(overlapPolicies).nullish(),
  labels: z
    .record(name, z.string().max(8_192))
    .refine((labels) => !Object.hasOwn(labels, '__proto__'), 'must not have the key __proto__'),
  priority: z.number().int().min(-1_000).max(1_000),
  /** Pauses the schedule after this many failed runs in a row. */
  pause_after: z.number().int().min(1).max(20).nullish(),
  /** True if code decides at each tick whether it runs. */
  has_condition: z.boolean(),
  /** How long that code may take. */
  condition_timeout_ms: z.number().int().min(100).max(600_000),
  enabled: z.boolean(),
  renamed_from: name.nullish(),
  /** Relative to the project folder. */
  file: z.string().max(4_096).nullish(),
  line: z.number().int().min(1).nullish(),
}

/** A schedule as its author declares it, in code or over the API. */
export const scheduleDefinition = z.object({
  ...fields,
  timezone: fields.timezone.default('UTC'),
  partition_offset: fields.partition_offset.default(0),
  catchup_window_minutes: fields.catchup_window_minutes.default(1_440),
  catch_up_on_resume: fields.catch_up_on_resume.default(false),
  labels: fields.labels.default({}),
  priority: fields.priority.default(0),
  has_condition: fields.has_condition.default(false),
  condition_timeout_ms: fields.condition_timeout_ms.default(30_000),
  enabled: fields.enabled.default(true),
})

/** What changes of a schedule: what is absent stays as it is. */
export const scheduleChanges = z.object(fields).partial()
export type ScheduleDefinition = z.infer<typeof scheduleDefinition>
export type ScheduleDefinitionInput = z.input<typeof scheduleDefinition>
