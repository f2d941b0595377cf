import { z } from 'zod'
import type { SensorMessage } from '../../contract/evaluation.ts'
import { checkedJson } from '../read-body.ts'
import { publishedAt, readAny } from './read-content.ts'
import { refused } from './refusals.ts'
import { recordableId } from './webhook-message.ts'

/** A message of Pub/Sub, and the bytes that its publisher sent. What is around them differs from one delivery to the next. */
export interface PushedMessage {
  readonly message: SensorMessage
  readonly bytes: Uint8Array
}

/** The body of a push. Google adds members now and then. */
const push = z.object({
  message: z.object({
    data: z.string().nullish(),
    attributes: z.record(z.string(), z.string()).nullish(),
    messageId: z.string().min(1),
    publishTime: z.string().nullish(),
    orderingKey: z.string().nullish(),
  }),
  subscription: z.string().nullish(),
})

/** What a verified push says, wrapped in JSON or, if its subscription is set up so, with its metadata in headers. */
export function pushedMessage(headers: Headers, body: Uint8Array, topic: string): PushedMessage {
  const id = headers.get('x-goog-pubsub-message-id')
  return id ? unwrapped(headers, body, { id, topic }) : wrapped(body, topic)
}

function wrapped(body: Uint8Array, topic: string): PushedMessage {
  const { data, error } = push.safeParse(checkedJson(body))
  if (data === undefined) {
    const [issue] = error.issues
    throw refused(
      'bad_body',
      `${issue?.path.join('.') || 'the body'}: ${issue?.message}`,
      'This address accepts Pub/Sub pushes. For unwrapped payloads, turn on "write metadata" of the subscription.',
    )
  }
  const { message, subscription } = data
  const { attributes, messageId, publishTime, orderingKey } = message
  const about = { topic, subscription, ordering_key: orderingKey }
  return toMessage(Buffer.from(message.data ?? '', 'base64'), { id: messageId, publishTime, attributes, about })
}

function unwrapped(headers: Headers, body: Uint8Array, { id, topic }: { id: string; topic: string }): PushedMessage {
  const attributes: Record<string, string> = {}
  for (const [name, value] of headers) if (!isOfTransport(name)) attributes[name] = value
  const about = {
    topic,
    subscription: headers.get('x-goog-pubsub-subscription-name'),
    ordering_key: headers.get('x-goog-pubsub-ordering-key'),
  }
  return toMessage(body, { id, publishTime: headers.get('x-goog-pubsub-publish-time'), attributes, about })
}

/** Attributes of an unwrapped message are headers like any other, so those that HTTP, Google or a proxy adds are left out by name. */
const isOfTransport = (name: string): boolean =>
  /^(?:x-goog-|x-forwarded-|x-cloud-|sec-|accept|content-|cf-|proxy-)/.test(name) ||
  ['authorization', 'cookie', 'host', 'connection', 'user-agent', 'from', 'transfer-encoding', 'via', 'forwarded'].includes(
    name,
  ) ||
  ['x-real-ip', 'x-request-id', 'keep-alive', 'te', 'expect', 'traceparent', 'tracestate', 'cdn-loop'].includes(name)

function toMessage(
  bytes: Uint8Array,
  of: {
    id: string
    publishTime: string | null | undefined
    attributes: Readonly<Record<string, string>> | null | undefined
    about: Readonly<Record<string, string | null | undefined>>
  },
): PushedMessage {
  const read = bytes.length === 0 ? { data: null, attributes: {} } : readAny(bytes)
  const about = Object.fromEntries(Object.entries(of.about).flatMap(([name, value]) => (value ? [[name, value] as const] : [])))
  return {
    bytes,
    message: {
      id: recordableId(of.id),
      data: read.data,
      attributes: { ...of.attributes, ...about, ...read.attributes },
      published_at: publishedAt(of.publishTime),
    },
  }
}
