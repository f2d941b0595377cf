import type { Delivery } from '../../contract/delivery.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { STATE_MOVED } from '../../ports/state-moved.ts'
import type { Told } from '../answers/told.ts'
import { readBytes } from '../read-body.ts'
import { provenRoute, type Route } from '../routing/route.ts'
import { answerOfDelivery, deliveryAnswer, noSuchHook, standing } from './delivery-response.ts'
import type { HookedSensor, HooksApi } from './hook-contract.ts'
import { isFormBody } from './read-content.ts'
import { receivePush, receiveWebhook } from './receive.ts'
import { reasonOf } from './refusals.ts'

const HOOK = '/hooks/:tenant/:workspace/:path'
const PUSH = '/pubsub/:tenant/:workspace/:sensor'

/** A sender adds what it likes to its address. What it sends shows who it is, so that is verified after it was read. */
const ofSender = { needs: 'signature', query: 'ignored', admit: () => undefined } as const

/** What may be wrong with a message, besides what is wrong with any request. */
const problems = [400, 401, 403, 404, 409, 413, 415, 422]

/** Routes for senders. They have no token of this server: what they send shows who they are. */
export const hookRoutes = (hooks: HooksApi): Route[] => [
  provenRoute({
    ...ofSender,
    method: 'POST',
    path: HOOK,
    operation: 'deliverWebhook',
    summary: 'Delivers a message to the sensors of this address.',
    answer: deliveryAnswer,
    problems,
    handle: ({ params, request }) =>
      telling(hooks, request, async () => {
        const sensors = sensorsAt(hooks, params)
        const { headers } = request
        const reading = readBytes(request)
        // Sensors of one path get one message under one id, also if its sender gave it none.
        const id = `msg_${hooks.mintId()}`
        const received = sensors.map((sensor) =>
          counted(hooks, sensor, async () => receiveWebhook(hooks, sensor, { headers, body: await reading, newId: () => id })),
        )
        return await deliver(hooks, await Promise.allSettled(received), isFormBody(headers))
      }),
  }),
  provenRoute({
    ...ofSender,
    method: 'POST',
    path: PUSH,
    operation: 'deliverPush',
    summary: 'Delivers a push of Pub/Sub to a sensor.',
    answer: deliveryAnswer,
    problems,
    handle: ({ params: { tenant, workspace, sensor: name }, request }) =>
      telling(hooks, request, async () => {
        const sensor = isHere(hooks, tenant, workspace) ? hooks.sensorNamed(name) : undefined
        if (sensor === undefined) throw noSuchHook()
        const received = counted(hooks, sensor, () => receivePush(hooks, sensor, request))
        return await deliver(hooks, await Promise.allSettled([received]), false)
      }),
  }),
  provenRoute({
    ...ofSender,
    method: 'OPTIONS',
    path: HOOK,
    operation: 'askToDeliver',
    summary: 'Answers a sender of CloudEvents that asks whether it may send here.',
    answer: 'nothing',
    statuses: [200, 204],
    problems: [404],
    handle: ({ params, request }) => permission(hooks, params, request.headers),
  }),
]

/** Tells the owner of the server of an error that is not the sender's. A sender that hangs up is no trouble of ours. */
async function telling<T>(hooks: HooksApi, { signal }: Request, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isServoError(error) && !signal.aborted) hooks.trouble(error)
    throw error
  }
}

const isHere = ({ scope }: HooksApi, tenant: string, workspace: string): boolean =>
  tenant === scope.tenant_id && workspace === scope.workspace_id

interface HookAddress {
  readonly tenant: string
  readonly workspace: string
  readonly path: string
}

function sensorsAt(hooks: HooksApi, { tenant, workspace, path }: HookAddress): readonly HookedSensor<'webhook'>[] {
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
): Promise<Told<typeof deliveryAnswer>> {
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
  return answerOfDelivery(
    answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])),
    isForm,
  )
}

/** What a sender may know of the reason why it must send again. Errors of the store name folders of this machine. */
const TOLD = new Set(['too_many_deliveries', 'project_not_loaded', 'deposed', 'closed'])

function forSender(error: unknown): unknown {
  const isOutage = isServoError(error, 'unavailable') || (isServoError(error) && error.code === STATE_MOVED)
  if (!isOutage || TOLD.has(error.code)) return error
  return new ServoError('unavailable', 'not_recorded', 'the message could not be recorded', {
    hint: 'Send it again, with the same id. If it was recorded after all, it is recognized.',
    cause: error,
  })
}

/**
 * The handshake of CloudEvents over HTTP, in which a sender asks whether it may send here at all. That shows no identity, so every sender
 * may; what it sends is verified. Calling the URL that it may name instead would let strangers make this server send requests.
 */
function permission(hooks: HooksApi, address: HookAddress, asked: Headers): Response {
  sensorsAt(hooks, address)
  const headers = new Headers({ allow: 'OPTIONS, POST' })
  const origin = asked.get('webhook-request-origin') ?? ''
  if (!/^[\w.:*/-]{1,300}$/.test(origin)) return new Response(null, { status: 204, headers })
  headers.set('webhook-allowed-origin', origin)
  headers.set('webhook-allowed-rate', '*')
  return new Response(null, { status: 200, headers })
}
