import { isObject } from '../../lib/is-object.ts'
import { checkedJson, mediaTypeOf } from '../read-body.ts'
import { type Content, type Form, publishedAt, readAny, readAs } from './read-content.ts'
import { refused } from './refusals.ts'

const PREFIX = 'ce-'
const required = ['specversion', 'id', 'source', 'type'] as const
/** Members of the JSON form that are content, not attributes. */
const content = ['data', 'data_base64']

/** True if the headers carry the attributes of a CloudEvent, and the body is its data. */
export const isBinaryEvent = (headers: Headers): boolean => required.some((name) => headers.has(`${PREFIX}${name}`))

/** True for the content types of whole events, one or many, in any format. */
export const claimsToBeEvent = (headers: Headers): boolean => mediaTypeOf(headers).type.startsWith('application/cloudevents')

/** An event in the binary form: attributes in headers. An event without data has no body, and then no type of one. */
export function binaryEvent(headers: Headers, bytes: Uint8Array, form: Exclude<Form, 'cloud event'> | null): Content {
  const attributes: Record<string, string> = {}
  for (const [name, value] of headers) if (name.startsWith(PREFIX)) attributes[name.slice(PREFIX.length)] = decoded(value)
  const type = headers.get('content-type')
  if (type !== null) attributes['datacontenttype'] = type
  return eventOf(attributes, { data: form === null ? null : readAs(form, bytes), attributes: {} })
}

/** An event in the structured form: one JSON object. */
export function structuredEvent(bytes: Uint8Array): Content {
  const event = checkedJson(bytes)
  if (!isObject(event) || Array.isArray(event)) throw badEvent('it is not a JSON object')
  const attributes: Record<string, string> = {}
  for (const [name, value] of Object.entries(event)) {
    if (content.includes(name) || value === null) continue
    if (typeof value === 'object') throw badEvent(`${name.slice(0, 100)} is not text, a number or a boolean`)
    attributes[name] = String(value)
  }
  const { data, data_base64 } = event
  if (data_base64 == null) return eventOf(attributes, { data: data ?? null, attributes: {} })
  if (typeof data_base64 !== 'string' || data !== undefined)
    throw badEvent('data_base64 is not a string, or it has data as well')
  return eventOf(attributes, readAny(Buffer.from(data_base64, 'base64')))
}

function eventOf(given: Readonly<Record<string, string>>, read: Pick<Content, 'data' | 'attributes'>): Content {
  for (const name of required) if (!given[name]) throw badEvent(`it has no ${name}`)
  const { specversion, id = '', source = '', ...others } = given
  if (specversion !== '1.0') throw badEvent(`its specversion is ${specversion?.slice(0, 20)}`)
  return {
    // The source is a URI, which has no blanks: the first blank is where it ends.
    id: `${source.replace(/\s/g, encodeURIComponent)} ${id}`,
    data: read.data,
    attributes: { ...others, id, source, ...read.attributes },
    published_at: publishedAt(others['time']),
  }
}

/** Values in headers are percent-encoded; the HTTP binding of CloudEvents says so. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

const badEvent = (why: string): Error =>
  refused(
    'bad_event',
    `this is not a CloudEvent: ${why}`,
    'An event has specversion 1.0, id, source and type, as cloudevents.io says.',
  )
