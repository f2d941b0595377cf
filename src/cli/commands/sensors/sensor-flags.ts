import { readFileSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import type { SensorDetail } from '../../../api/automation/sensor-contract.ts'
import { badFlag, labelsFlag, wholeNumber } from '../../flags.ts'

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
      `Write --data '{"id": 7}', --data @message.json, or --data - for standard input. Plain text is JSON in quotes: '"text"'`,
    )
  }
}

async function given(data: string): Promise<string> {
  if (data === '-') return await textOf(process.stdin)
  if (!data.startsWith('@')) return data
  try {
    return readFileSync(data.slice(1), 'utf8')
  } catch (error) {
    throw badFlag(`--data cannot be read: ${error instanceof Error ? error.message : ''}`, 'Check the path after the @.')
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

type Config = SensorDetail['definition']['config']
type Kind = Exclude<Config['type'], 'poll'>

/** A sensor without code, as flags describe it. What is wrong with a value is found where the sensor is made. */
export function sourceFlags(name: string, flags: SourceFlags): object {
  const { select, partitionAt, keyAt } = flags
  const example = `servo sensors create ${name} --webhook orders --verify github --secret SHOP_SECRET --select mart/orders --key-at /id`
  const kind = kindOf(flags)
  if (kind === undefined) throw badFlag('missing option --webhook, --topic, --watch or --run-state', `Write: ${example}`)
  if (select === undefined) throw badFlag('missing option --select', `Write: ${example}`)
  const fixed = { partition: partitionAt ?? null, key: keyAt ?? null }
  return { config: { ...newConfig(kind, flags), fixed }, ...changesOf(flags) }
}

/** What flags change of a sensor. Its source is changed as a whole, so what they do not name is taken from what it is. */
export function changedFlags(
  name: string,
  config: Config,
  flags: SourceFlags & { name?: string; enable?: boolean },
): Record<string, unknown> {
  return {
    ...(flags.name !== undefined && { name: flags.name }),
    ...(flags.enable !== undefined && { enabled: flags.enable }),
    ...changedConfig(name, config, flags),
    ...changesOf(flags),
  }
}

const changesOf = ({ select, maxTries, description }: SourceFlags): object => ({
  ...(select !== undefined && { asset_selection: select }),
  ...(maxTries !== undefined && { max_tries: wholeNumber('--max-tries', maxTries, { min: 1, max: 100 }) }),
  ...(description !== undefined && { description }),
})

/** What kind of source flags name, if any. With --run-state, --watch names the assets whose runs count. */
function kindOf({ webhook, topic, runState, watch }: SourceFlags): Kind | undefined {
  const kinds: readonly [string, Kind, unknown][] = [
    ['--webhook', 'webhook', webhook],
    ['--topic', 'pubsub', topic],
    ['--run-state', 'run', runState],
    ['--watch', 'asset', watch],
  ]
  const [first, second] = kinds.filter(([, , value]) => value !== undefined)
  if (second !== undefined && !(first?.[1] === 'run' && second[1] === 'asset'))
    throw badFlag(`${first?.[0]} and ${second[0]} cannot be used together`, 'Create a sensor for each.')
  return first?.[1]
}

function newConfig(kind: Kind, { webhook, verify, secret = [], topic, watch, on, runState, ...flags }: SourceFlags): object {
  switch (kind) {
    case 'webhook':
      if (verify === undefined)
        throw badFlag(
          'missing option --verify',
          'Say how senders prove who they are: --verify standard, github or token; none if anybody may send.',
        )
      return { type: kind, path: webhook, verify, secrets: secret }
    case 'pubsub':
      return { type: kind, topic, audience: flags.audience ?? null, service_account: flags.serviceAccount ?? null }
    case 'run':
      return { type: kind, states: statesOf(runState), assets: watch ?? null }
    case 'asset':
      return { type: kind, assets: watch, ...(on !== undefined && { happenings: on }) }
  }
}

const statesOf = (states: readonly string[] | undefined) => states?.map((state) => state.toUpperCase())

function changedConfig(name: string, config: Config, flags: SourceFlags): { config?: object } {
  const { webhook, verify, secret, topic, audience, serviceAccount, watch, on, runState, partitionAt, keyAt } = flags
  // --watch alone of a sensor that watches runs means their assets.
  const kind = kindOf(flags) === 'asset' && config.type === 'run' ? 'run' : (kindOf(flags) ?? config.type)
  const ofKind: Record<string, [string, unknown][]> = {
    webhook: [
      ['--verify', verify],
      ['--secret', secret],
    ],
    pubsub: [
      ['--audience', audience],
      ['--service-account', serviceAccount],
    ],
    asset: [['--on', on]],
  }
  for (const [other, named] of Object.entries(ofKind)) {
    const [flag] = named.find(([, value]) => value !== undefined) ?? []
    if (other !== kind && flag !== undefined)
      throw badFlag(`${flag} is only for sensors of type ${other}; ${name} is of type ${kind}`, `Leave ${flag} out.`)
  }
  const known = 'fixed' in config ? config.fixed : null
  const fixed = { partition: partitionAt ?? known?.partition ?? null, key: keyAt ?? known?.key ?? null }
  if (kind !== config.type && kind !== 'poll') return { config: { ...newConfig(kind, flags), fixed } }
  const given = {
    ...{ path: webhook, verify, secrets: secret, topic, audience, service_account: serviceAccount },
    ...{ assets: watch, happenings: on, states: statesOf(runState) },
  }
  const changed = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const isChanged = Object.keys(changed).length > 0 || partitionAt !== undefined || keyAt !== undefined
  return isChanged ? { config: { ...config, ...changed, fixed } } : {}
}

const FLAGS: Readonly<Record<string, string>> = {
  'config.path': '--webhook',
  'config.verify': '--verify',
  'config.secrets': '--secret',
  'config.topic': '--topic',
  'config.audience': '--audience',
  'config.service_account': '--service-account',
  'config.assets': '--watch',
  'config.happenings': '--on',
  'config.states': '--run-state',
  'config.fixed.partition': '--partition-at',
  'config.fixed.key': '--key-at',
  asset_selection: '--select',
  description: '--description',
}

/** The flag that a field of a sensor comes from; the field itself if it comes from none. */
export const flagOf = (field: string): string =>
  Object.entries(FLAGS).find(([path]) => field === path || field.startsWith(`${path}.`))?.[1] ?? field
