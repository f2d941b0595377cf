import type { SensorMessage } from '../../contract/evaluation.ts'
import type { SensorSource } from '../../contract/sensor.ts'
import { sha256 } from '../../lib/hash.ts'
import { isObject } from '../../lib/is-object.ts'
import { hasNoControlCharacters } from '../../lib/text/control-characters.ts'
import { checkedJson } from '../read-body.ts'
import { binaryEvent, claimsToBeEvent, isBinaryEvent, structuredEvent } from './cloud-event.ts'
import { type Content, type Form, formOf, readAs } from './read-content.ts'
import { refused } from './refusals.ts'
import type { Voucher } from './signed-request.ts'

type Scheme = Extract<SensorSource, { type: 'webhook' }>['verify']

/** Longer ids are kept as a hash. An id on record may have twice as many characters, and keys are made of it and others. */
const MAX_ID = 256

/** What a verified request says. `newId` names a message whose sender does not. */
export function webhookMessage(
  { headers, body }: { headers: Headers; body: Uint8Array },
  { scheme, voucher, newId }: { scheme: Scheme; voucher: Voucher; newId: () => string },
): SensorMessage {
  const content = contentOf(headers, body, scheme)
  // A request that is caught and sent again under another id must not count as another message, so an id that is signed goes first.
  const id = voucher.isIdSigned ? voucher.id : content.id || voucher.id || idInHeaders(headers)
  return {
    id: id ? recordableId(id) : newId(),
    data: content.data,
    attributes: { ...voucher.attributes, ...content.attributes },
    published_at: content.published_at ?? voucher.published_at,
  }
}

function contentOf(headers: Headers, body: Uint8Array, scheme: Scheme): Content {
  // A sender with nothing to say need not say in which form, unless the form always says something.
  const form = body.length === 0 && !claimsToBeEvent(headers) ? null : formOf(headers)
  if (form === 'cloud event') return structuredEvent(body)
  if (isBinaryEvent(headers)) return binaryEvent(headers, body, form)
  return { id: null, data: form === null ? null : dataOf(form, body, scheme), attributes: {}, published_at: null }
}

const idInHeaders = (headers: Headers): string | null => headers.get('idempotency-key') || headers.get('x-message-id')

/** GitHub can send its JSON as a field of a form. */
function dataOf(form: Exclude<Form, 'cloud event'>, body: Uint8Array, scheme: Scheme): unknown {
  const data = readAs(form, body)
  if (form !== 'form' || scheme !== 'github') return data
  if (!isObject(data) || typeof data.payload !== 'string')
    throw refused('bad_body', 'the form has no field payload', 'Choose application/json in the settings of the webhook.')
  return checkedJson(Buffer.from(data.payload))
}

/** An id that senders may choose freely, in a form that any record takes. */
export const recordableId = (id: string): string =>
  id.length <= MAX_ID && id.isWellFormed() && hasNoControlCharacters(id) ? id : `sha256=${sha256(JSON.stringify(id))}`
