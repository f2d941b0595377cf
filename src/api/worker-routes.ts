import { dispatchId, queueSafeId } from '../domain/dispatch/dispatch-ids.ts'
import { ServoError } from '../lib/error.ts'
import { traceparentOf } from '../lib/traceparent.ts'
import type { Verdict } from '../model/event.ts'
import type { AlarmClock } from '../ports/clock.ts'
import { bearerOf, unauthenticated } from './access/access.ts'
import { type ReturnAddress, withReturnAddress } from './return-address.ts'
import { answer } from './routing/answer.ts'
import { BASE, provenRoute, type Route, route } from './routing/route.ts'
import type { AttemptGrant, TokenRefusal, VerifiedGrant } from './task-tokens.ts'
import { waitForWork } from './wait-for-work.ts'
import {
  completedAnswer,
  completedBody,
  heartbeatAnswer,
  heartbeatBody,
  startedAnswer,
  startedBody,
  type TaskCallbacks,
  takenWork,
  takeWorkBody,
} from './worker-contract.ts'

export interface WorkerRoutesOptions extends ReturnAddress {
  readonly callbacks: TaskCallbacks
  readonly clock: AlarmClock
}

const tasks = `${BASE}/tasks/:task_id` as const

/** The routes that workers in any language call: to report on an attempt and, if they pull, to take work. */
export function workerRoutes(options: WorkerRoutesOptions): Route[] {
  const { callbacks, clock } = options
  const ofAttempt = {
    method: 'POST',
    needs: 'task_token',
    problems: [403, 409],
    admit: (asked: { request: Request; params: { task_id: string } }) => attemptOf(asked, options),
  } as const
  return [
    provenRoute({
      ...ofAttempt,
      path: `${tasks}/started`,
      operation: 'reportStarted',
      summary: 'Reports that a worker has begun the attempt.',
      answer: startedAnswer,
      body: startedBody,
      handle: async ({ by: grant, body, request }) => {
        const { worker_id } = echoing(grant, body)
        const answered = await callbacks.started(grant, { worker_id }, traceparentOf(request.headers.get('traceparent')))
        refuseIgnored(answered.verdict)
        if (answered.verdict.kind === 'duplicate' && answered.worker_id && answered.worker_id !== worker_id)
          throw alreadyStarted()
        return {
          should_cancel: answered.should_cancel,
          ...(answered.reason !== undefined && { reason: answered.reason }),
        }
      },
    }),
    provenRoute({
      ...ofAttempt,
      path: `${tasks}/heartbeat`,
      operation: 'sendHeartbeat',
      summary: 'Reports that the worker is alive, and asks whether it is to stop.',
      answer: heartbeatAnswer,
      body: heartbeatBody,
      handle: async ({ by: grant, body }) => {
        const { worker_id } = echoing(grant, body)
        const { verdict, should_cancel, reason } = await callbacks.heartbeat(grant, { worker_id })
        // A heartbeat states no fact that could be dropped, so it is never refused: the answer to a worker whose attempt is over is to stop.
        const over = verdict.kind === 'ignored' ? verdict.reason : undefined
        const why = over ?? reason
        return {
          should_cancel: should_cancel || over !== undefined,
          ...(why !== undefined && { reason: why }),
          ...options.tokens.refresh(grant),
        }
      },
    }),
    provenRoute({
      ...ofAttempt,
      path: `${tasks}/completed`,
      operation: 'reportCompleted',
      summary: 'Reports how the attempt ended.',
      answer: completedAnswer,
      body: completedBody,
      statuses: [200, 202],
      handle: async ({ by: grant, body, request }) => {
        const { attempt_id: _, ...result } = echoing(grant, body)
        const verdict = await callbacks.completed(grant, result, traceparentOf(request.headers.get('traceparent')))
        refuseIgnored(verdict)
        // A parked result is kept, and counts as soon as the event that it waits for is seen: it is not lost, but not yet visible either.
        return answer({ accepted: true }, verdict.kind === 'parked' ? 202 : 200)
      },
    }),
    // The route has an older name; elsewhere "claim" is about the lease.
    route({
      method: 'POST',
      path: `${BASE}/workers/claim`,
      operation: 'takeWork',
      summary: 'Takes work, and waits for some if there is none.',
      answer: takenWork,
      needs: 'worker',
      body: takeWorkBody,
      waits: true,
      handle: async ({ body: { wait_ms, ...asked }, request }) => {
        const work = await waitForWork(callbacks, asked, { waitMs: wait_ms, clock, hungUp: request.signal })
        return { dispatches: work.map((envelope) => withReturnAddress(envelope, options)) }
      },
    }),
  ]
}

/** The grant of the caller's token, if it is for the attempt that the path names. */
function attemptOf(
  { request, params }: { request: Request; params: { task_id: string } },
  { tokens, scope }: WorkerRoutesOptions,
): VerifiedGrant {
  const token = bearerOf(request.headers)
  if (token === undefined) throw noTaskToken('the request has no token')
  const verified = tokens.verify(token)
  if (!verified.ok) throw refusal(verified.reason)
  const { grant } = verified
  if (grant.tenant_id !== scope.tenant_id || grant.workspace_id !== scope.workspace_id) throw wrongWorkspace()
  const own = queueSafeId('d', dispatchId(grant.run_id, grant.task_key, grant.attempt))
  if (own !== params.task_id) throw wrongAttempt(`the token is for ${own}`)
  return grant
}

function echoing<B extends { attempt_id?: string | undefined }>(grant: AttemptGrant, body: B): B {
  if (body.attempt_id === undefined || body.attempt_id === grant.attempt_id) return body
  throw wrongAttempt(`the token is for ${grant.attempt_id}, the body is about ${body.attempt_id}`)
}

function refuseIgnored(verdict: Verdict): void {
  if (verdict.kind === 'parked' && verdict.reason !== 'waiting') {
    throw new ServoError('bug', 'not_understood', `a recorded event could not be read back: ${verdict.reason}`)
  }
  if (verdict.kind !== 'ignored') return
  throw new ServoError('conflict', verdict.reason, `nothing was recorded: ${verdict.reason.replaceAll('_', ' ')}`, {
    hint: 'Stop, and discard the output of this attempt: the task has ended, or a later attempt is running.',
    facts: { should_cancel: true },
  })
}

const alreadyStarted = (): ServoError =>
  new ServoError('conflict', 'already_started', 'another worker has begun this attempt', {
    hint: 'Stop. Queues sometimes deliver twice; the first worker continues.',
    facts: { should_cancel: true },
  })

function refusal(reason: TokenRefusal): ServoError {
  if (reason !== 'expired') return noTaskToken(`the token is not valid: ${reason.replaceAll('_', ' ')}`)
  return new ServoError('invalid', 'token_expired', 'the token has expired', {
    hint: 'Send heartbeats, and use the new token from each answer.',
  })
}

const noTaskToken = (message: string): ServoError =>
  unauthenticated(message, 'Send the header authorization: Bearer <token>, with the task_token of the dispatch.')

const wrongAttempt = (message: string): ServoError =>
  new ServoError('invalid', 'wrong_attempt', message, { hint: 'Use the token that came with this dispatch.' })

const wrongWorkspace = (): ServoError =>
  new ServoError('invalid', 'wrong_workspace', 'the token is for another workspace', {
    hint: 'Call the callback_base_url that came with the dispatch.',
  })
