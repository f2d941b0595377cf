import { type Context, Hono } from 'hono'
import { dispatchId, queueSafeId } from '../domain/dispatch/dispatch-ids.ts'
import { ServoError } from '../lib/error.ts'
import { traceparentOf } from '../lib/traceparent.ts'
import type { Verdict } from '../model/event.ts'
import type { AlarmClock } from '../ports/clock.ts'
import { problemResponse } from './problem.ts'
import { readBody } from './read-body.ts'
import { type ReturnAddress, withReturnAddress } from './return-address.ts'
import type { AttemptGrant, TokenRefusal, VerifiedGrant } from './task-tokens.ts'
import { waitForWork } from './wait-for-work.ts'
import { completedBody, heartbeatBody, startedBody, type TaskCallbacks, takeWorkBody } from './worker-contract.ts'

export interface WorkerRoutesOptions extends ReturnAddress {
  readonly callbacks: TaskCallbacks
  readonly clock: AlarmClock
  /** True if the bearer of this API token may take work. */
  readonly mayTakeWork: (token: string) => Promise<boolean>
}

/** The routes that workers in any language call: to report on an attempt and, if they pull, to take work. */
export function workerRoutes(options: WorkerRoutesOptions): Hono {
  const { callbacks, tokens, clock } = options
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  app.notFound((c) =>
    problemResponse(new ServoError('not_found', 'no_such_route', `route ${c.req.method} ${c.req.path} not found`)),
  )

  const tasks = '/api/v1/orchestration/tasks/:task_id'

  app.post(`${tasks}/started`, async (c) => {
    const grant = attemptOf(c, options)
    const { worker_id } = echoing(grant, await readBody(c.req.raw, startedBody))
    const answer = await callbacks.started(grant, { worker_id }, traceparentOf(c.req.header('traceparent')))
    refuseIgnored(answer.verdict)
    if (answer.verdict.kind === 'duplicate' && answer.worker_id && answer.worker_id !== worker_id) throw alreadyStarted()
    return c.json({ should_cancel: answer.should_cancel, ...(answer.reason !== undefined && { reason: answer.reason }) })
  })

  app.post(`${tasks}/heartbeat`, async (c) => {
    const grant = attemptOf(c, options)
    const { worker_id } = echoing(grant, await readBody(c.req.raw, heartbeatBody))
    const { verdict, should_cancel, reason } = await callbacks.heartbeat(grant, { worker_id })
    // A heartbeat states no fact that could be dropped, so it is never refused: the answer to a worker whose attempt is over is to stop.
    const over = verdict.kind === 'ignored' ? verdict.reason : undefined
    const why = over ?? reason
    return c.json({
      should_cancel: should_cancel || over !== undefined,
      ...(why !== undefined && { reason: why }),
      ...tokens.refresh(grant),
    })
  })

  app.post(`${tasks}/completed`, async (c) => {
    const grant = attemptOf(c, options)
    const { attempt_id: _, ...result } = echoing(grant, await readBody(c.req.raw, completedBody))
    const verdict = await callbacks.completed(grant, result, traceparentOf(c.req.header('traceparent')))
    refuseIgnored(verdict)
    // A parked result is kept, and counts as soon as the event that it waits for is seen: it is not lost, but not yet visible either.
    return c.json({ accepted: true }, verdict.kind === 'parked' ? 202 : 200)
  })

  // The route has an older name; elsewhere "claim" is about the lease.
  app.post('/api/v1/orchestration/workers/claim', async (c) => {
    if (!(await options.mayTakeWork(bearer(c)))) throw unauthenticated('unknown token')
    const { wait_ms, ...request } = await readBody(c.req.raw, takeWorkBody)
    const work = await waitForWork(callbacks, request, { waitMs: wait_ms, clock, hungUp: c.req.raw.signal })
    return c.json({ dispatches: work.map((envelope) => withReturnAddress(envelope, options)) })
  })

  return app
}

/** The grant of the caller's token, if it is for the attempt that the path names. */
function attemptOf(c: Context, { tokens, scope }: WorkerRoutesOptions): VerifiedGrant {
  const verified = tokens.verify(bearer(c))
  if (!verified.ok) throw refusal(verified.reason)
  const { grant } = verified
  if (grant.tenant_id !== scope.tenant_id || grant.workspace_id !== scope.workspace_id) throw wrongWorkspace()
  const own = queueSafeId('d', dispatchId(grant.run_id, grant.task_key, grant.attempt))
  if (own !== c.req.param('task_id')) throw wrongAttempt(`the token is for ${own}`)
  return grant
}

function echoing<B extends { attempt_id?: string | undefined }>(grant: AttemptGrant, body: B): B {
  if (body.attempt_id === undefined || body.attempt_id === grant.attempt_id) return body
  throw wrongAttempt(`the token is for ${grant.attempt_id}, the body is about ${body.attempt_id}`)
}

function bearer(c: Context): string {
  const [, token] = /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '') ?? []
  if (token === undefined) throw unauthenticated('the request has no token')
  return token
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
  if (reason !== 'expired') return unauthenticated(`the token is not valid: ${reason.replaceAll('_', ' ')}`)
  return new ServoError('invalid', 'token_expired', 'the token has expired', {
    hint: 'Send heartbeats, and use the new token from each answer.',
  })
}

const unauthenticated = (message: string): ServoError =>
  new ServoError('invalid', 'unauthenticated', message, {
    hint: 'Send the header authorization: Bearer <token>, with the task_token of the dispatch, or an API token to take work.',
  })

const wrongAttempt = (message: string): ServoError =>
  new ServoError('invalid', 'wrong_attempt', message, { hint: 'Use the token that came with this dispatch.' })

const wrongWorkspace = (): ServoError =>
  new ServoError('invalid', 'wrong_workspace', 'the token is for another workspace', {
    hint: 'Call the callback_base_url that came with the dispatch.',
  })
