import type { Delivery } from '../../contract/delivery.ts'
import type { SensorMessage } from '../../contract/evaluation.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { traceparentOf } from '../../lib/traceparent.ts'
import { bearerOf } from '../access/access.ts'
import { mediaTypeOf, readBytes } from '../read-body.ts'
import type { HookedSensor, HooksApi } from './hook-contract.ts'
import { pushedMessage } from './push-message.ts'
import { notReady, reasonOf, refused, secretMissing } from './refusals.ts'
import { verifyWebhook } from './verify.ts'
import { webhookMessage } from './webhook-message.ts'

/** The message of a request to a webhook: verified first, and only then understood. */
export function receiveWebhook(
  hooks: HooksApi,
  { sensor_id, sensor_name, config }: HookedSensor<'webhook'>,
  request: { readonly headers: Headers; readonly body: Uint8Array; readonly newId: () => string },
): Delivery {
  const { headers, body, newId } = request
  const secrets = config.secrets.flatMap((name) => hooks.secret(name) ?? [])
  try {
    const voucher = verifyWebhook(config.verify, { headers, body, secrets, now: hooks.now() })
    const message = webhookMessage({ headers, body }, { scheme: config.verify, voucher, newId })
    return deliveryOf(sensor_id, message, { body, headers })
  } catch (error) {
    if (reasonOf(error) === 'secret_missing') hooks.trouble(secretMissing(sensor_name, config.secrets))
    throw error
  }
}

/** The message of a push. Its token is in a header, so nothing of the body is read before it is verified. */
export async function receivePush(hooks: HooksApi, sensor: HookedSensor<'pubsub'>, request: Request): Promise<Delivery> {
  const { headers } = request
  const { topic, service_account } = sensor.config
  const token = bearerOf(headers)
  if (token === undefined)
    throw refused('bad_token', 'the push has no token', 'Turn on authentication (OIDC) of the subscription.')
  // Loaded by the first push: most servers get none.
  const { verifyPushToken } = await import('./push-token.ts')
  await verifyPushToken(token, {
    keys: hooks.keys,
    now: hooks.now(),
    audiences: audiencesOf(hooks, sensor),
    serviceAccount: service_account ?? null,
  })
  const { encoding } = mediaTypeOf(headers)
  if (encoding !== 'identity')
    throw refused('unsupported_media_type', `unsupported content encoding ${encoding.slice(0, 40)}`, 'Send it as it is.')
  const { message, bytes } = pushedMessage(headers, await readBytes(request), topic)
  return deliveryOf(sensor.sensor_id, message, { body: bytes, headers })
}

/**
 * What the token of a push must be meant for: what the sensor says or, because that is what Pub/Sub takes unless told otherwise, the
 * address of the sensor. The `Host` of the request is no part of it: whoever has a token of Google for another server could choose it.
 */
function audiencesOf(hooks: HooksApi, { sensor_id, sensor_name, config }: HookedSensor<'pubsub'>): string[] {
  if (config.audience != null) return [config.audience]
  const base = hooks.baseUrl()
  if (base === undefined) {
    const message = `pushes for the sensor ${sensor_name} cannot be verified: this server does not know its public address`
    const hint = 'Set SERVO_PUBLIC_URL to the address that Pub/Sub calls, or `audience` of the sensor.'
    hooks.trouble(new ServoError('unavailable', 'audience_unknown', message, { hint }))
    throw notReady('audience_unknown', 'this sensor cannot verify pushes yet', 'Its owner has been told.')
  }
  const { tenant_id, workspace_id } = hooks.scope
  return [sensor_name, sensor_id].map((sensor) =>
    [base.replace(/\/+$/, ''), 'pubsub', ...[tenant_id, workspace_id, sensor].map(encodeURIComponent)].join('/'),
  )
}

function deliveryOf(
  sensor_id: string,
  message: SensorMessage,
  { body, headers }: { readonly body: Uint8Array; readonly headers: Headers },
): Delivery {
  const traceparent = traceparentOf(headers.get('traceparent'))
  return {
    sensor_id,
    message,
    body_hash: sha256(body),
    body_size: body.length,
    ...(traceparent !== undefined && { traceparent }),
  }
}
