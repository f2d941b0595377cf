import type { SensorSource } from '../../contract/sensor.ts'
import { isSameToken } from '../../lib/hash.ts'
import { bearerOf } from '../access/access.ts'
import { noSecret, refused } from './refusals.ts'
import { hmacOf, type SignedRequest, type Voucher } from './signed-request.ts'
import { verifyStandard } from './standard-webhooks.ts'

type WebhookSource = Extract<SensorSource, { type: 'webhook' }>

const NOTHING_KNOWN: Voucher = { id: null, isIdSigned: false, attributes: {}, published_at: null }

/** Throws unless the sender knows a secret of the sensor. Comparisons take the same time whatever was sent. */
export function verifyWebhook(scheme: WebhookSource['verify'], request: SignedRequest): Voucher {
  if (scheme !== 'none' && request.secrets.length === 0) throw noSecret()
  switch (scheme) {
    case 'standard':
      return verifyStandard(request)
    case 'github':
      return verifyGithub(request)
    case 'token':
      return verifyToken(request)
    case 'none':
      return refusePages(request)
  }
}

/** GitHub signs the body alone, not the headers. */
function verifyGithub({ headers, body, secrets }: SignedRequest): Voucher {
  const given = headers.get('x-hub-signature-256') ?? ''
  if (!secrets.some((secret) => isSameToken(given, `sha256=${hmacOf(secret, [body], 'hex')}`)))
    throw refused(
      'bad_signature',
      given === '' ? 'the request has no X-Hub-Signature-256' : 'the signature of this request is not valid',
      'Enter the secret of this sensor in the settings of the webhook.',
    )
  const event = headers.get('x-github-event')
  return {
    id: headers.get('x-github-delivery'),
    isIdSigned: false,
    attributes: event === null ? {} : { event },
    published_at: null,
  }
}

function verifyToken({ headers, secrets }: SignedRequest): Voucher {
  const given = bearerOf(headers) ?? headers.get('x-servo-token') ?? ''
  if (secrets.some((secret) => isSameToken(given, secret))) return NOTHING_KNOWN
  throw refused(
    'bad_token',
    given === '' ? 'the request has no token' : 'the token does not belong to this sensor',
    'Send it as Authorization: Bearer …, or as X-Servo-Token.',
  )
}

/**
 * Without a secret anyone may send, but a page in somebody's browser must not reach a server on that person's machine. Browsers say
 * which page it is. Senders of CloudEvents have an Origin too: a bare name, without a scheme.
 */
function refusePages({ headers }: SignedRequest): Voucher {
  const site = headers.get('sec-fetch-site') ?? 'none'
  const origin = headers.get('origin') ?? ''
  if (site === 'none' && origin !== 'null' && !origin.includes('://')) return NOTHING_KNOWN
  throw refused('forbidden', 'web pages may not send to a sensor', 'Send the message from a server.')
}
