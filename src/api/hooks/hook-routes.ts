import { type Context, Hono } from 'hono'
import type { Delivery } from '../../contract/delivery.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { problemResponse } from '../problem.ts'
import { readBytes } from '../read-body.ts'
import { deliveryResponse, noSuchHook, standing } from './delivery-response.ts'
import type { HookedSensor, HooksApi } from './hook-contract.ts'
import { isFormBody } from './read-content.ts'
import { receivePush, receiveWebhook } from './receive.ts'
import { reasonOf } from './refusals.ts'

const HOOK = '/hooks/:tenant/:workspace/:path'
const PUSH = '/pubsub/:tenant/:workspace/:sensor'

/** Routes for senders. They have no token of this server: what they send shows who they are. */
export function hookRoutes(hooks: HooksApi): Hono {
  const app = new Hono()
  app.onError((error, c) => {
    // A sender that hangs up is no trouble of ours.
    if (!isServoError(error) && !c.req.raw.signal.aborted) hooks.trouble(error)
    return problemResponse(error)
  })

  app.post(HOOK, async (c) => {
    const sensors = sensorsAt(hooks, c.req.param())
    const { headers } = c.req.raw
    const reading = readBytes(c.req.raw)
    // Sensors of one path get one message under one id, also if its sender gave it none.
    const id = `msg_${hooks.mintId()}`
    const received = sensors.map((sensor) =>
      counted(hooks, sensor, async () => receiveWebhook(hooks, sensor, { headers, body: await reading, newId: () => id })),
    )
    return await deliver(hooks, await Promise.allSettled(received), isFormBody(headers))
  })

  app.post(PUSH, async (c) => {
    const { tenant, workspace, sensor: name } = c.req.param()
    const sensor = isHere(hooks, tenant, workspace) ? hooks.sensorNamed(name) : undefined
    if (sensor === undefined) throw noSuchHook()
    const received = counted(hooks, sensor, () => receivePush(hooks, sensor, c.req.raw))
    return await deliver(hooks, await Promise.allSettled([received]), false)
  })

  app.all(HOOK, (c) => (c.req.method === 'OPTIONS' ? permission(hooks, c) : notAllowed(c.req.method, 'OPTIONS, POST')))
  app.all(PUSH, (c) => notAllowed(c.req.method, 'POST'))
  return app
}

const isHere = ({ scope }: HooksApi, tenant: string, workspace: string): boolean =>
  tenant === scope.tenant_id && workspace === scope.workspace_id

function sensorsAt(
  hooks: HooksApi,
  { tenant, workspace, path }: { tenant: string; workspace: string; path: string },
): readonly HookedSensor<'webhook'>[] {
  const sensors = isHere(hooks, tenant, workspace) ? hooks.sensorsAt(path) : []
  if (sensors.length === 0) throw noSuchHook()
  return sensors
}

/** Counts a refusal with the sensor that it protects. */
async function counted<T>(hooks: HooksApi, { sensor_id }: { sensor_id: string }, receive: () => Promise<T>): Promise<T> {
  try {
    return await receive()
  } catch (error) {
    const reason = reasonOf(error)
    if (reason !== undefined) hooks.refused(sensor_id, reason)
    throw error
  }
}

/** Delivers to the sensors that take the message. A sender that none of them knows is refused as the first one says. */
async function deliver(
  hooks: HooksApi,
  received: readonly PromiseSettledResult<Delivery>[],
  isForm: boolean,
): Promise<Response> {
  const deliveries = hooks.deliveries()
  const accepted = received.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  if (accepted.length === 0) for (const each of received) if (each.status === 'rejected') throw each.reason
  if (deliveries === undefined) {
    for (const { sensor_id } of accepted) hooks.refused(sensor_id, 'automation_off')
    throw standing('automation_off')
  }
  const answers = await Promise.allSettled(accepted.map((delivery) => deliveries.deliver(delivery)))
  for (const [index, each] of answers.entries()) {
    const answer = each.status === 'fulfilled' ? each.value : undefined
    const sensor = accepted[index]
    if (answer?.kind === 'standstill' && answer.code !== 'removed' && sensor !== undefined)
      hooks.refused(sensor.sensor_id, answer.code)
  }
  for (const each of answers) if (each.status === 'rejected') throw forSender(each.reason)
  return deliveryResponse(
    answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])),
    isForm,
  )
}

/** What a sender may know of the reason why it must send again. Errors of the store name folders of this machine. */
const TOLD = new Set(['too_many_deliveries', 'project_not_loaded', 'deposed', 'closed'])

function forSender(error: unknown): unknown {
  if (!isServoError(error, 'unavailable') || TOLD.has(error.code)) return error
  return new ServoError('unavailable', 'not_recorded', 'the message could not be recorded', {
    hint: 'Send it again, with the same id. If it was recorded after all, it is recognized.',
    cause: error,
  })
}

/**
 * The handshake of CloudEvents over HTTP, in which a sender asks whether it may send here at all. That shows no identity, so every sender
 * may; what it sends is verified. Calling the URL that it may name instead would let strangers make this server send requests.
 */
function permission(hooks: HooksApi, c: Context<object, typeof HOOK>): Response {
  sensorsAt(hooks, c.req.param())
  const headers = new Headers({ allow: 'OPTIONS, POST' })
  const origin = c.req.header('webhook-request-origin') ?? ''
  if (!/^[\w.:*/-]{1,300}$/.test(origin)) return new Response(null, { status: 204, headers })
  headers.set('webhook-allowed-origin', origin)
  headers.set('webhook-allowed-rate', '*')
  return new Response(null, { status: 200, headers })
}

function notAllowed(method: string, allowed: string): Response {
  const problem = new ServoError('invalid', 'method_not_allowed', `${method.slice(0, 20)} is not supported here`, {
    hint: 'Send messages with POST.',
  })
  const response = problemResponse(problem)
  response.headers.set('allow', allowed)
  return response
}
