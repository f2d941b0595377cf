import type { z } from 'zod'
import { type SensorSource, type sensorSource, webhookVerifications } from '../../contract/sensor.ts'
import { invalid, show } from '../invalid.ts'
import type { Mistake } from '../mistake.ts'
import { checkOptionNames } from '../option-names.ts'
import { isSchema, type StandardSchemaV1 } from '../standard-schema.ts'

/** Only in types: what an event of it is. */
declare const sends: unique symbol

type SourceData = Extract<z.input<typeof sensorSource>, { type: 'webhook' | 'pubsub' }>

/** Where pushed events come from. */
export interface PushSource<Event> {
  readonly data: SourceData
  readonly schema: StandardSchemaV1<unknown, Event>
  readonly [sends]?: Event
}

type Verification = Extract<SensorSource, { type: 'webhook' }>['verify']

export type WebhookOptions<Event> = {
  /** The last part of its address. */
  path: string
  schema: StandardSchemaV1<unknown, Event>
} & (
  | {
      /** How to verify senders: Standard Webhooks, GitHub signatures, or a token. */
      verify: Exclude<Verification, 'none'>
      /**
       * The environment variable of the server that holds the secret. To rotate a secret, name both variables, the newer one first:
       * Servo accepts either.
       */
      secret: string | readonly string[]
    }
  | {
      /** Anyone who knows the address may send. */
      verify: 'none'
      secret?: Mistake<"verify: 'none' uses no secret">
    }
)

/** As many as a sensor may name; more than two are of no use for long. */
const MAX_SECRETS = 10

export function webhook<Event>(options: WebhookOptions<Event>): PushSource<Event> {
  const { path, verify, secret, schema } = options ?? {}
  if (typeof path !== 'string' || !/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/.test(path))
    throw invalid(
      'bad_webhook',
      `\`path\` of a webhook cannot be ${show(path)}`,
      'Write one word of letters, digits, "_", "." and "-": path: \'orders\'.',
    )
  const owner = `webhook ${path}`
  checkOptionNames(owner, options, ['path', 'verify', 'secret', 'schema'])
  if (!webhookVerifications.includes(verify))
    throw invalid(
      'bad_webhook',
      `\`verify\` of ${owner} cannot be ${show(verify)}`,
      "Write 'standard', 'github', 'token' or 'none'.",
    )
  const secrets = secretsOf(owner, verify, secret)
  return { data: { type: 'webhook', path, verify, secrets }, schema: checkedSchema(schema, owner) }
}

function secretsOf(owner: string, verify: Verification, secret: unknown): string[] {
  const names: readonly unknown[] = secret === undefined ? [] : Array.isArray(secret) ? secret : [secret]
  if (verify === 'none') {
    if (names.length === 0) return []
    throw invalid(
      'bad_secret',
      `${owner} has a secret, but \`verify: 'none'\` does not use it`,
      "Write verify: 'standard', 'github' or 'token', or remove `secret`.",
    )
  }
  const hint = "Name the environment variable that has it: secret: 'SHOP_WEBHOOK_SECRET'. Do not write the secret itself."
  if (names.length === 0)
    throw invalid(
      'bad_secret',
      `${owner} needs a secret for \`verify: '${verify}'\``,
      `${hint} To accept every request: verify: 'none'.`,
    )
  if (names.length > MAX_SECRETS)
    throw invalid('bad_secret', `${owner} has ${names.length} secrets`, `Name at most ${MAX_SECRETS}.`)
  return names.map((name) => {
    if (typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name)) return name
    // What is there may be the secret itself, so it is not shown.
    throw invalid('bad_secret', `\`secret\` of ${owner} must be the name of an environment variable`, hint)
  })
}

export interface PubsubOptions<Event> {
  topic: string
  /** The audience that the token of a push must have. Default: the address of the sensor. */
  audience?: string
  /** The service account that may push. Default: every account with a Google token for the audience. */
  serviceAccount?: string
  schema: StandardSchemaV1<unknown, Event>
}

export function pubsub<Event>(options: PubsubOptions<Event>): PushSource<Event> {
  const { topic, audience, serviceAccount, schema } = options ?? {}
  if (!isText(topic))
    throw invalid('bad_pubsub', `\`topic\` cannot be ${show(topic)}`, "Write topic: 'projects/shop/topics/orders'.")
  const owner = `pubsub ${topic}`
  checkOptionNames(owner, options, ['topic', 'audience', 'serviceAccount', 'schema'])
  for (const [name, value, example] of [
    ['audience', audience, 'https://servo.example.com'],
    ['serviceAccount', serviceAccount, 'push@shop.iam.gserviceaccount.com'],
  ] as const) {
    if (value !== undefined && !isText(value))
      throw invalid('bad_pubsub', `\`${name}\` of ${owner} cannot be ${show(value)}`, `Write ${name}: '${example}'.`)
  }
  const data: SourceData = {
    type: 'pubsub',
    topic,
    ...(audience !== undefined && { audience }),
    ...(serviceAccount !== undefined && { service_account: serviceAccount }),
  }
  return { data, schema: checkedSchema(schema, owner) }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '' && value.length <= 1_000

export function checkedSchema<S>(schema: S, owner: string): S {
  if (isSchema(schema)) return schema
  throw invalid('bad_schema', `${owner} needs a schema`, 'Write schema: z.object({ … }).')
}
