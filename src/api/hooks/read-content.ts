import { jsonOrText } from '../../lib/json.ts'
import { toIso } from '../../lib/time.ts'
import { checkedJson, checkShape, type MediaType, mediaTypeOf, unsupported } from '../read-body.ts'
import { refused } from './refusals.ts'

/** What a message says. Its id and when it was published are null if the sender does not say. */
export interface Content {
  readonly id: string | null
  readonly data: unknown
  readonly attributes: Readonly<Record<string, string>>
  readonly published_at: string | null
}

/** How the bytes of a message are to be read. */
export type Form = 'json' | 'text' | 'form' | 'cloud event'

/** The form of a body. Throws 415 for one that is not read here. */
export function formOf(headers: Headers): Form {
  const media = mediaTypeOf(headers)
  const form = formNamed(media.type)
  if (form === undefined || !isUtf8(media) || media.encoding !== 'identity') throw notRead(media)
  return form
}

function formNamed(type: string): Form | undefined {
  if (type === 'application/cloudevents-batch+json') return undefined
  if (type === 'application/cloudevents+json') return 'cloud event'
  if (type === 'application/json' || /^application\/[^/]+\+json$/.test(type)) return 'json'
  if (type === 'application/x-www-form-urlencoded') return 'form'
  return /^text\/[^/]+$/.test(type) ? 'text' : undefined
}

/** True of a body that is read as fields of a form, which is what `curl -d` sends unless told otherwise. */
export const isFormBody = (headers: Headers): boolean => formNamed(mediaTypeOf(headers).type) === 'form'

const isUtf8 = ({ charset }: MediaType): boolean =>
  charset === undefined || ['utf-8', 'utf8', 'us-ascii', 'ascii'].includes(charset)

const notRead = ({ given, type, encoding }: MediaType): Error =>
  refused(
    'unsupported_media_type',
    unsupported(given.slice(0, 100), encoding.slice(0, 40)),
    type === 'application/cloudevents-batch+json'
      ? 'Send each event in its own request: each is accepted or refused separately.'
      : 'Send UTF-8 text, JSON, a form or a CloudEvent, with its content-type and not compressed.',
  )

/** The value that bytes stand for. */
export function readAs(form: Exclude<Form, 'cloud event'>, bytes: Uint8Array): unknown {
  if (form === 'json') return checkedJson(bytes)
  const text = textOf(bytes)
  if (text === undefined) throw refused('bad_body', 'the body is not UTF-8', 'Send UTF-8, or bytes as base64 in JSON.')
  return form === 'text' ? text : fieldsOf(text)
}

/** A field that is given several times is a list. */
function fieldsOf(text: string): unknown {
  const given = new Map<string, string[]>()
  for (const [name, value] of new URLSearchParams(text)) {
    const values = given.get(name)
    if (values === undefined) given.set(name, [value])
    else values.push(value)
  }
  const fields = Object.fromEntries([...given].map(([name, values]) => [name, values.length === 1 ? values[0] : values]))
  checkShape(fields)
  return fields
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

/** Data of a sender that does not say what it is: JSON, text, or base64 of anything else, which is said in an attribute. */
export function readAny(bytes: Uint8Array): Pick<Content, 'data' | 'attributes'> {
  const text = textOf(bytes)
  if (text === undefined) return { data: Buffer.from(bytes).toString('base64'), attributes: { data_encoding: 'base64' } }
  const data = jsonOrText(text)
  checkShape(data)
  return { data, attributes: {} }
}

/** A moment in one form; null for text that is none. */
export function publishedAt(text: string | null | undefined): string | null {
  const ms = /^\d{4}-\d\d-\d\dT/.test(text ?? '') ? Date.parse(text ?? '') : Number.NaN
  return Number.isNaN(ms) ? null : toIso(ms)
}
