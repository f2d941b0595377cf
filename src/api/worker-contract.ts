import { z } from 'zod'
import { type AttemptResult, attemptResult, type DispatchEnvelope, dispatchEnvelope } from '../contract/dispatch.ts'
import { isLocalWorker } from '../domain/tasks/worker-id.ts'
import { SECOND_MS } from '../lib/time.ts'
import { id } from '../model/envelope.ts'
import type { Verdict } from '../model/event.ts'
import { named } from './answers/told.ts'
import type { AttemptGrant } from './task-tokens.ts'

/** Below the minute after which proxies commonly cut a silent connection. */
const MAX_WAIT_MS = 30 * SECOND_MS

/** A worker may name its attempt again, although its token names it. */
const echo = { attempt_id: id.optional() }

/** The worker chooses its id. The id of a local worker names its process, so that a new leader can conclude that the worker ended with it. */
const workerId = id.refine((name) => !isLocalWorker(name), 'must not begin with "local:", which names workers of the server')

export const startedBody = z.object({ worker_id: workerId, ...echo })
export const heartbeatBody = z.object({ worker_id: workerId.optional(), ...echo })
export const completedBody = attemptResult.extend(echo)
export const takeWorkBody = z.object({
  worker_id: workerId,
  /** Queues it takes work from; absent for all. */
  queues: z.array(id).min(1).max(100).optional(),
  /** Attempts it has room for. */
  capacity: z.number().int().min(1).max(1_000),
  /** How long to wait for work when there is none. */
  wait_ms: z.number().int().min(0).max(MAX_WAIT_MS).default(0),
})

const stopping = {
  should_cancel: z.boolean().describe('True if the worker shall stop the attempt.'),
  reason: z.string().optional(),
}
export const startedAnswer = named('StartedAnswer', z.object(stopping))
export const heartbeatAnswer = named(
  'HeartbeatAnswer',
  z.object({
    ...stopping,
    token: z.string().optional().describe('A new token for this attempt, to be used from now on.'),
    token_expires_at: z.string().optional(),
  }),
)
export const completedAnswer = named('CompletedAnswer', z.object({ accepted: z.literal(true) }))
export const takenWork = named(
  'TakenWork',
  z.object({ dispatches: z.array(named('Dispatch', dispatchEnvelope.clone())).describe('What the worker is to run.') }),
)

export type WorkRequest = Omit<z.infer<typeof takeWorkBody>, 'wait_ms'>

export interface StartAnswer {
  readonly verdict: Verdict
  /** The worker that has the attempt, when that is known: queues deliver twice, and only the first worker may go on. */
  readonly worker_id?: string | null
  readonly should_cancel: boolean
  readonly reason?: string
}

export interface HeartbeatAnswer {
  readonly verdict: Verdict
  readonly should_cancel: boolean
  readonly reason?: string
}

/** The calls from the API to the leader. Grants come from verified tokens; verdicts come from the fold, and the facts that they judge are durable. */
export interface TaskCallbacks {
  /** `traceparent` is the trace of the worker, if it sent one. */
  started(grant: AttemptGrant, body: { readonly worker_id: string }, traceparent?: string): Promise<StartAnswer>
  heartbeat(grant: AttemptGrant, body: { readonly worker_id?: string | undefined }): Promise<HeartbeatAnswer>
  /** `duplicate` when the same result is on record already: a worker that never got the answer reports again. */
  completed(grant: AttemptGrant, result: AttemptResult, traceparent?: string): Promise<Verdict>
  /** At most `capacity` dispatches for this worker, without waiting. A dispatch that was handed out is not handed out again for a while. */
  takeWork(request: WorkRequest): Promise<readonly DispatchEnvelope[]>
  /** Calls back when there may be work to take. The function it returns ends that. */
  onWork(call: () => void): () => void
}
