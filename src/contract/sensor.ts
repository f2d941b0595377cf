import { z } from 'zod'

const name = z.string().min(1).max(255)
/** A selection, a path or a topic: text of one line. */
const text = z.string().min(1).max(1_000)

/** RFC 6901: `/order/date` is the member `date` of the member `order`. */
const jsonPointer = z
  .string()
  .max(1_000)
  .regex(/^(?:\/(?:[^~/]|~0|~1)*)*$/, 'must be a JSON pointer, such as /order/date')

/** What a sensor without code makes of a message: a run of its selection, of the partition and under the key that the message names. */
const fixedRequest = z.object({ partition: jsonPointer.nullish(), key: jsonPointer.nullish() })

export const webhookVerifications = ['standard', 'github', 'token', 'none'] as const
export const assetHappenings = ['materialized', 'check_failed'] as const
export const watchedRunStates = ['SUCCEEDED', 'FAILED', 'CANCELLED'] as const
const fixed = { fixed: fixedRequest.nullish() }

/** Where a sensor hears of things, and what it needs to know for that. */
export const sensorSource = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('webhook'),
    /** The last part of its address. */
    path: z
      .string()
      .max(255)
      .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*$/, 'must be one word of A-Z a-z 0-9 _ . -'),
    /** How senders show who they are: by the Standard Webhooks rules, as GitHub does, with a token, or not at all. */
    verify: z.enum(webhookVerifications),
    /** Names of secrets, the newest first: while they are rotated, any of them counts. */
    secrets: z.array(name).max(10).default([]),
    ...fixed,
  }),
  z.object({
    type: z.literal('pubsub'),
    topic: text,
    /** What the token of a push must be meant for. Absent: the address of the sensor. */
    audience: text.nullish(),
    /** Who may push; absent: whoever Google vouches for with that audience. */
    service_account: text.nullish(),
    ...fixed,
  }),
  z.object({
    type: z.literal('poll'),
    every_ms: z
      .number()
      .int()
      .min(1_000)
      .max(31 * 86_400_000),
  }),
  z.object({
    type: z.literal('asset'),
    /** Selections of the assets that it watches. */
    assets: z.array(text).min(1).max(1_000),
    happenings: z.array(z.enum(assetHappenings)).min(1).default(['materialized']),
    ...fixed,
  }),
  z.object({
    type: z.literal('run'),
    states: z.array(z.enum(watchedRunStates)).min(1),
    /** Only runs with one of these assets. Absent: every run. */
    assets: z.array(text).min(1).max(1_000).nullish(),
    ...fixed,
  }),
])
export type SensorSource = z.infer<typeof sensorSource>
export const sensorTypes = ['webhook', 'pubsub', 'poll', 'asset', 'run'] as const satisfies readonly SensorSource['type'][]

/** A sensor as its author declares it, in code or over the API. `checkSensor` says what its parts must have in common. */
export const sensorDefinition = z.object({
  name,
  description: z.string().max(16_384).nullish(),
  config: sensorSource,
  /** Least time between two evaluations that the clock brings. */
  min_interval_sec: z.number().int().min(0).max(86_400).default(0),
  /** How long its code may take. */
  timeout_ms: z.number().int().min(100).max(600_000).default(30_000),
  /** What it may run; with code, none means anything. */
  asset_selection: z.array(text).max(10_000).default([]),
  code_version: name.nullish(),
  has_code: z.boolean().default(true),
  /** After so many failed tries a message is a dead letter. */
  max_tries: z.number().int().min(1).max(100).default(5),
  enabled: z.boolean().default(true),
  renamed_from: name.nullish(),
  /** Relative to the project folder. */
  file: z.string().max(4_096).nullish(),
  line: z.number().int().min(1).nullish(),
})
export type SensorDefinition = z.infer<typeof sensorDefinition>
export type SensorDefinitionInput = z.input<typeof sensorDefinition>

/** What is wrong with a definition whose parts are right each for itself. */
export function checkSensor(
  sensor: Pick<SensorDefinition, 'config' | 'has_code' | 'asset_selection'>,
  wrong: (path: (string | number)[], message: string) => void,
): void {
  const { config, has_code, asset_selection } = sensor
  const isFixed = 'fixed' in config && config.fixed != null
  if (config.type === 'poll' && !has_code) wrong(['has_code'], 'only code can poll')
  if (config.type !== 'poll' && !has_code && !isFixed)
    wrong(['config', 'fixed'], 'a sensor without code says which partition and key a message names; {} for neither')
  if (has_code && isFixed) wrong(['config', 'fixed'], 'code and a fixed request exclude each other')
  if (!has_code && asset_selection.length === 0) wrong(['asset_selection'], 'a sensor without code says what it runs')
  if (config.type === 'webhook' && config.verify !== 'none' && config.secrets.length === 0)
    wrong(['config', 'secrets'], `with verify: ${config.verify}, name the secret that senders share`)
}
