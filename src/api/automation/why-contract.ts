import { z } from 'zod'
import { type Conflict, type ConflictingRequest, comparedParts } from '../../domain/why/conflicts.ts'
import { type Reason, type WhyAnswer, type WhyKind, whyKinds, whyVerdicts } from '../../domain/why/reasons.ts'
import { moment, named, nextCursor, typedAs, whole } from '../answers/told.ts'
import { listQuery, whenQuery } from '../request/list-query.ts'

export const reasonQuery = z.object({
  /** Of a schedule: 05:00, 2025-01-15T05:00 in its zone, or a moment with a zone. */
  at: z.string().min(1).max(64).optional(),
  /** Of an asset. */
  partition: z.string().min(1).max(2_048).optional(),
  /** Of a sensor: the id of a message to it. */
  message: z.string().min(1).max(1_000).optional(),
})
export type ReasonQuery = z.infer<typeof reasonQuery>

export const conflictQuery = listQuery.extend(whenQuery('noticed'))
export type ConflictQuery = z.infer<typeof conflictQuery>

/** One reason, and the reasons behind it. */
const reason = named(
  'Reason',
  z.object({
    code: z.string(),
    facts: z.record(z.string(), z.unknown()),
    get because() {
      return z.array(reason)
    },
  }),
)

export const whyAnswer = named(
  'WhyAnswer',
  z.object({
    subject: z.object({
      kind: z.enum(whyKinds),
      id: z.string(),
      name: z.string(),
      partition: z.string().nullable(),
      message_id: z.string().nullable().describe('The message that was asked about.'),
    }),
    verdict: z.enum(whyVerdicts),
    at: moment.nullable().describe('The moment in question, if there is one.'),
    timezone: z.string().nullable().describe('The zone in which the schedule is read; null where there is none.'),
    because: z.array(typedAs<Reason>(reason)).describe('The most telling first.'),
  }) satisfies z.ZodType<WhyAnswer>,
)

const conflictingRequest = z.object({
  origin: typedAs<Reason>(reason).describe('Who asked.'),
  requested_at: moment,
  assets: z.array(z.string()).describe('The first of the selected assets.'),
  asset_count: whole,
  partitions: z.array(z.string()).nullable(),
  partition_count: whole,
  labels: z.record(z.string(), z.string()),
  label_count: whole,
  priority: whole,
}) satisfies z.ZodType<ConflictingRequest>

const keptOfBody = z.object({ body_hash: z.string().nullable(), body_size: whole.nullable() })

const noticed = { detected_at: moment, event_id: z.string(), advice: z.string() }

/** Two different requests under one name. The first counts; the later one made nothing. */
const conflict = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('run_key'),
    ...noticed,
    run_key: z.string(),
    key: z.string().nullable().describe('The key as the code or the user gave it; null if there is none.'),
    sensor_name: z.string().nullable().describe('The sensor whose key it is.'),
    run_id: z.string().describe('The run of the first request.'),
    first: conflictingRequest.nullable().describe('Null if it is not on record.'),
    later: conflictingRequest.nullable(),
    differs: z.array(z.enum(comparedParts)).describe('In what the requests differ, as far as they are kept.'),
  }),
  z.object({
    kind: z.literal('message'),
    ...noticed,
    sensor_id: z.string(),
    sensor_name: z.string(),
    message_id: z.string(),
    eval_id: z.string().describe('The evaluation that counts.'),
    first: keptOfBody,
    later: keptOfBody,
  }),
]) satisfies z.ZodType<Conflict>

export const conflictPage = named('ConflictPage', z.object({ conflicts: z.array(named('Conflict', conflict)), ...nextCursor }))
export interface ConflictPage {
  readonly conflicts: readonly Conflict[]
  readonly next_cursor: string | null
}

/** Why something ran or did not, and who asked for different things under one name. */
export interface WhyApi {
  why(kind: WhyKind, name: string, query: ReasonQuery): Promise<WhyAnswer>
  /** The newest first. */
  conflicts(query: ConflictQuery): Promise<ConflictPage>
}
