import { callerOf } from '../caller.ts'
import { withDeclaration } from '../declaration.ts'
import { type Duration, durationMs } from '../duration.ts'
import { checkedName, invalid, show } from '../invalid.ts'
import type { KeysOfSet } from '../partitions/key-changes.ts'
import { isSchema, type StandardSchemaV1 } from '../standard-schema.ts'
import type { Nothing } from './asset-options.ts'
import type { AnyResource, Opened } from './resource.ts'
import type { RunRequest } from './trigger.ts'
import type { MaybePromise } from './values.ts'

/** Only in types: what an event of it is. */
declare const sends: unique symbol

/** Where pushed events come from. */
export interface PushSource<Event> {
  readonly data:
    | { readonly type: 'webhook'; readonly path: string; readonly verify: 'standard' | 'github' | 'none' }
    | { readonly type: 'pubsub'; readonly topic: string }
  readonly schema: StandardSchemaV1<unknown, Event>
  readonly [sends]?: Event
}

export interface WebhookOptions<Event> {
  /** The last part of its address. */
  path: string
  /** How senders sign: by the Standard Webhooks rules, as GitHub does, or not at all. */
  verify: 'standard' | 'github' | 'none'
  schema: StandardSchemaV1<unknown, Event>
}

export function webhook<Event>({ path, verify, schema }: WebhookOptions<Event>): PushSource<Event> {
  checkedName(path, 'webhook path')
  if (!['standard', 'github', 'none'].includes(verify))
    throw invalid('bad_webhook', `verify of webhook ${path} is ${show(verify)}`, "Write 'standard', 'github' or 'none'.")
  return { data: { type: 'webhook', path, verify }, schema: checkedSchema(schema, `webhook ${path}`) }
}

export interface PubsubOptions<Event> {
  topic: string
  schema: StandardSchemaV1<unknown, Event>
}

export function pubsub<Event>({ topic, schema }: PubsubOptions<Event>): PushSource<Event> {
  if (typeof topic !== 'string' || topic === '')
    throw invalid('bad_pubsub', `the topic is ${show(topic)}`, "Write topic: 'projects/shop/topics/orders'.")
  return { data: { type: 'pubsub', topic }, schema: checkedSchema(schema, `pubsub ${topic}`) }
}

export interface Sensor {
  readonly name: string
}

/** Keys of dynamic sets that come and go with an evaluation: if another was faster and it does not count, they do not either. */
export interface KeysFound {
  add?: KeysOfSet | readonly KeysOfSet[]
  remove?: KeysOfSet | readonly KeysOfSet[]
}

export type Requested = RunRequest | readonly RunRequest[] | ({ runs: readonly RunRequest[] } & KeysFound) | undefined

export interface PushOptions<Event> {
  source: PushSource<Event>
  /** `id` identifies the event: hand it on as the key of the run, and an event sent twice runs once. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a handler may return nothing
  on(event: NoInfer<Event> & { readonly id: string }): MaybePromise<Requested | void>
}

export interface PollOptions<Cursor, Resources> {
  every: Duration
  cursor: StandardSchemaV1<unknown, Cursor>
  resources?: Resources & Readonly<Record<string, AnyResource>>
  /** `cursor` is undefined the first time. Without a cursor in the result it stays as it is. */
  poll(args: {
    readonly cursor: NoInfer<Cursor> | undefined
    readonly resources: Opened<Resources>
    readonly signal: AbortSignal
  }): MaybePromise<{ cursor?: NoInfer<Cursor>; runs: readonly RunRequest[] } & KeysFound>
}

function push<Event>(name: string, options: PushOptions<Event>): Sensor {
  checkedName(name, 'sensor')
  if (!isSchema(options?.source?.schema))
    throw invalid('bad_sensor', `sensor ${name} has no source`, 'Write source: webhook({ … }) or pubsub({ … }).')
  if (typeof options.on !== 'function')
    throw invalid('bad_sensor', `sensor ${name} does nothing`, 'Write on: (event) => run(orders, { key: event.id }).')
  return withDeclaration<Sensor>({ name }, { kind: 'push_sensor', name, options, ...callerOf(push) })
}

function poll<Cursor, Resources = Nothing>(name: string, options: PollOptions<Cursor, Resources>): Sensor {
  checkedName(name, 'sensor')
  durationMs(options?.every, `every of sensor ${name}`)
  checkedSchema(options.cursor, `cursor of sensor ${name}`)
  if (typeof options.poll !== 'function')
    throw invalid('bad_sensor', `sensor ${name} does nothing`, 'Write poll: ({ cursor }) => ({ cursor, runs: [] }).')
  return withDeclaration<Sensor>({ name }, { kind: 'poll_sensor', name, options, ...callerOf(poll) })
}

/** Code that requests runs because something happened elsewhere: it gets messages, or polls. */
export const sensor = { push, poll }

function checkedSchema<S>(schema: S, owner: string): S {
  if (isSchema(schema)) return schema
  throw invalid('bad_schema', `${owner} has no schema`, 'Write schema: z.object({ … }).')
}
