import { readFileSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import { ServoError } from '../../lib/error.ts'
import { labelsFlag, wholeNumber } from '../flags.ts'

const badFlag = (message: string, hint: string): ServoError => new ServoError('invalid', 'bad_flag', message, { hint })

/** The content of a message: JSON in the flag itself, in a file (`@file`), or from standard input (`-`). */
export async function dataFlag(flags: {
  data?: string
  attribute?: string[]
}): Promise<{ data?: unknown; attributes?: Record<string, string> }> {
  const attributes = flags.attribute === undefined ? {} : { attributes: labelsFlag(flags.attribute, '--attribute') }
  if (flags.data === undefined) return attributes
  const text = await given(flags.data)
  try {
    return { data: JSON.parse(text), ...attributes }
  } catch (error) {
    throw badFlag(
      `--data is not JSON: ${error instanceof Error ? error.message : ''}`,
      `Write --data '{"id": 7}', --data @message.json, or --data - for standard input; plain text is '"text"'.`,
    )
  }
}

async function given(data: string): Promise<string> {
  if (data === '-') return await textOf(process.stdin)
  if (!data.startsWith('@')) return data
  try {
    return readFileSync(data.slice(1), 'utf8')
  } catch (error) {
    throw badFlag(`--data ${data} cannot be read: ${error instanceof Error ? error.message : ''}`, 'Name a file after the @.')
  }
}

export interface SourceFlags {
  webhook?: string
  verify?: string
  secret?: string[]
  topic?: string
  audience?: string
  serviceAccount?: string
  watch?: string[]
  on?: string[]
  runState?: string[]
  select?: string[]
  partitionAt?: string
  keyAt?: string
  maxTries?: string
  description?: string
}

/** A sensor without code, as flags describe it. What is wrong with a value is found where the sensor is made. */
export function sourceFlags(name: string, flags: SourceFlags): object {
  const { webhook, topic, watch, runState, select, partitionAt, keyAt, maxTries, description } = flags
  const sources = { '--webhook': webhook, '--topic': topic, '--run-state': runState, '--watch': watch }
  const [first, second] = Object.entries(sources).flatMap(([flag, value]) => (value === undefined ? [] : [flag]))
  const example = `servo sensors create ${name} --webhook orders --verify github --secret SHOP_SECRET --select mart/orders --key-at /id`
  if (first === undefined) throw badFlag('one of --webhook, --topic, --watch and --run-state is missing', example)
  // With --run-state, --watch names the assets whose runs count.
  if (second !== undefined && !(first === '--run-state' && second === '--watch'))
    throw badFlag(`${first} and ${second} exclude each other`, 'Make a sensor for each.')
  if (select === undefined) throw badFlag('--select is missing', example)
  const fixed = { partition: partitionAt ?? null, key: keyAt ?? null }
  return {
    config: { ...configOf(flags), fixed },
    asset_selection: select,
    ...(maxTries !== undefined && { max_tries: wholeNumber('--max-tries', maxTries, { min: 1, max: 100 }) }),
    ...(description !== undefined && { description }),
  }
}

function configOf({ webhook, verify, secret = [], topic, audience, serviceAccount, watch, on, runState }: SourceFlags): object {
  if (webhook !== undefined) {
    if (verify === undefined)
      throw badFlag(
        '--verify is missing',
        'How do senders show who they are? standard, github, token, or none if anybody may send.',
      )
    return { type: 'webhook', path: webhook, verify, secrets: secret }
  }
  if (topic !== undefined) return { type: 'pubsub', topic, audience: audience ?? null, service_account: serviceAccount ?? null }
  if (runState !== undefined)
    return { type: 'run', states: runState.map((state) => state.toUpperCase()), assets: watch ?? null }
  return { type: 'asset', assets: watch, ...(on !== undefined && { happenings: on }) }
}
