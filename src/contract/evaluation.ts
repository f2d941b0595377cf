import { z } from 'zod'
import { type ReportedKeys, reportedKeys } from './partition-keys.ts'

const text = z.string().min(1).max(1_000)

/** A message to a sensor, as its code gets it. */
export interface SensorMessage {
  /** The id that its sender gave it, or a new one. */
  readonly id: string
  /** Its content: the value of the JSON, or the text of anything else. */
  readonly data: unknown
  /** What came with it: attributes of Pub/Sub, of a CloudEvent, or the event header of GitHub. */
  readonly attributes: Readonly<Record<string, string>>
  /** When the sender published it, if it says so. */
  readonly published_at: string | null
}

/** Something that happened in this workspace and that a sensor watches. */
export type Happening =
  | {
      readonly type: 'materialized'
      readonly asset_key: string
      readonly partition_key: string | null
      readonly run_id: string | null
      readonly at: string
    }
  | {
      readonly type: 'check_failed'
      readonly asset_key: string
      readonly partition_key: string | null
      readonly run_id: string | null
      readonly checks: readonly string[]
      /** The worst among them: `error` failed the attempt, after `warn` there is a materialization too. */
      readonly severity?: 'error' | 'warn'
      readonly at: string
    }
  | {
      readonly type: 'run'
      readonly run_id: string
      readonly state: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'
      readonly asset_selection: readonly string[]
      readonly labels: Readonly<Record<string, string>>
      readonly at: string
    }

/** What a worker is asked to evaluate: code of a sensor, or the condition of a schedule. */
export type EvaluationRequest = {
  /** New for every evaluation that is begun. */
  readonly evaluation_id: string
  readonly timeout_ms: number
} & (
  | { readonly of: 'message'; readonly sensor: string; readonly message: SensorMessage }
  | { readonly of: 'happening'; readonly sensor: string; readonly id: string; readonly happening: Happening }
  | { readonly of: 'poll'; readonly sensor: string; readonly cursor: string | null }
  | { readonly of: 'condition'; readonly schedule: string; readonly scheduled_for: string }
)

const askedRun = z.object({
  asset_selection: z.array(text).min(1),
  partition_selection: z.array(text).nullish(),
  /** Names the request: of several requests with the same key, only the first creates a run. */
  key: z.string().min(1).max(1_000).nullish(),
  labels: z.record(text, z.string().max(1_000)).optional(),
  priority: z.number().int().min(-1_000).max(1_000).optional(),
})

/** The end of what the code printed; for whoever watches, and not kept. */
const printed = { printed: z.string().max(10_000).optional() }

/** Enough to find a field by. */
export const MAX_FIELD = 200

/** What a worker reports of an evaluation. */
export const evaluationReport = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('requests'),
    runs: z.array(askedRun),
    /** JSON text; absent keeps the cursor. */
    cursor: z.string().nullish(),
    ...reportedKeys,
    ...printed,
  }),
  z.object({ outcome: z.literal('condition'), holds: z.boolean(), reason: z.string().max(1_000).nullish(), ...printed }),
  z.object({ outcome: z.literal('error'), error: z.string(), unfit_field: z.string().max(MAX_FIELD).optional() }),
])

/** A run as the code of a sensor asks for it. */
export interface AskedRun {
  readonly asset_selection: readonly string[]
  readonly partition_selection?: readonly string[] | null | undefined
  readonly key?: string | null | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly priority?: number | undefined
}

/** How an evaluation ended. */
export type EvaluationReport =
  | ({
      readonly outcome: 'requests'
      readonly runs: readonly AskedRun[]
      readonly cursor?: string | null | undefined
      readonly printed?: string | undefined
    } & ReportedKeys)
  | {
      readonly outcome: 'condition'
      readonly holds: boolean
      readonly reason?: string | null | undefined
      readonly printed?: string | undefined
    }
  | {
      readonly outcome: 'error'
      readonly error: string
      /** The field of the message that does not fit the schema, with dots; empty for the message as a whole. Absent if anything else failed. */
      readonly unfit_field?: string | undefined
    }
  | { readonly outcome: 'timed_out' }
  /** No process could begin it, such as when the project cannot be loaded any more. It was no try, and nothing is recorded. */
  | { readonly outcome: 'unavailable'; readonly reason: string }
  /** The server closes: nothing is known of it, and nothing is recorded. */
  | { readonly outcome: 'cancelled' }

/** Evaluates code of the project in a worker. Never rejects: whatever happens to the worker is a report. */
export interface Evaluator {
  evaluate(request: EvaluationRequest): Promise<EvaluationReport>
  /** Why nothing can be evaluated now; undefined while it can. */
  outage?(): Outage | undefined
}

/** Why no code of the project can be evaluated. */
export interface Outage {
  readonly reason: string
  /** True until it is of use to try again. */
  readonly isResting: boolean
}
