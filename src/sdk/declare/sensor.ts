import { assetHappenings, watchedRunStates } from '../../contract/sensor.ts'
import { callerOf } from '../caller.ts'
import { declarationOf, withDeclaration } from '../declaration.ts'
import { type Bounds, durationWithin, evaluationBounds } from '../duration.ts'
import { checkedName, invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import { isSchema } from '../standard-schema.ts'
import type { Nothing } from './asset-options.ts'
import { checkResources, checkWholeNumber } from './option-checks.ts'
import { checkedSchema } from './push-source.ts'
import type {
  AnyWatched,
  AssetHappening,
  AssetSensorOptions,
  PollOptions,
  PushOptions,
  RunSensorOptions,
  SensorSettings,
  ToldSettings,
  WatchedRunState,
} from './sensor-options.ts'
import { type Selection, selectedKeys } from './trigger.ts'

export interface Sensor {
  readonly name: string
}

const settings = ['description', 'timeout', 'select', 'resources', 'renamedFrom', 'enabled']
const told = [...settings, 'maxTries', 'on']
const sensorKinds = {
  push_sensor: [...told, 'source'],
  poll_sensor: [...settings, 'every', 'minInterval', 'cursor', 'poll'],
  asset_sensor: [...told, 'watch', 'happenings'],
  run_sensor: [...told, 'watch', 'states'],
} as const satisfies Record<string, readonly string[]>

type SensorKind = keyof typeof sensorKinds

const pollBounds: Bounds = { least: '1s', most: '31d' }
const intervalBounds: Bounds = { least: '0s', most: '1d' }

export function isSensor(value: unknown): value is Sensor {
  const kind = declarationOf(value)?.kind
  return kind !== undefined && Object.hasOwn(sensorKinds, kind)
}

function push<Event, Resources = Nothing>(name: string, options: PushOptions<Event, Resources>): Sensor {
  checkSettings('push_sensor', name, options)
  if (!isSchema(options.source?.schema))
    throw invalid('bad_sensor', `sensor ${name} needs a source`, 'Write source: webhook({ … }) or pubsub({ … }).')
  checkHandler(name, options)
  return withDeclaration<Sensor>({ name }, { kind: 'push_sensor', name, options, ...callerOf(push) })
}

function poll<Cursor, Resources = Nothing>(name: string, options: PollOptions<Cursor, Resources>): Sensor {
  checkSettings('poll_sensor', name, options)
  durationWithin(options.every, pollBounds, `\`every\` of sensor ${name}`)
  if (options.minInterval !== undefined)
    durationWithin(options.minInterval, intervalBounds, `\`minInterval\` of sensor ${name}`)
  checkedSchema(options.cursor, `\`cursor\` of sensor ${name}`)
  if (typeof options.poll !== 'function')
    throw invalid('bad_sensor', `sensor ${name} needs \`poll\``, 'Write poll: ({ cursor }) => ({ cursor, runs: [] }).')
  return withDeclaration<Sensor>({ name }, { kind: 'poll_sensor', name, options, ...callerOf(poll) })
}

function asset<const Watched extends AnyWatched, const Happening extends AssetHappening = 'materialized', Resources = Nothing>(
  name: string,
  options: AssetSensorOptions<Watched, Happening, Resources>,
): Sensor {
  checkSettings('asset_sensor', name, options)
  checkWatched(name, options.watch)
  if (options.happenings !== undefined) checkNames(name, 'happenings', options.happenings, assetHappenings)
  checkHandler(name, options)
  return withDeclaration<Sensor>({ name }, { kind: 'asset_sensor', name, options, ...callerOf(asset) })
}

function run<const State extends WatchedRunState, Resources = Nothing>(
  name: string,
  options: RunSensorOptions<State, Resources>,
): Sensor {
  checkSettings('run_sensor', name, options)
  checkNames(name, 'states', options.states, watchedRunStates)
  if (options.watch !== undefined) checkWatched(name, options.watch)
  checkHandler(name, options)
  return withDeclaration<Sensor>({ name }, { kind: 'run_sensor', name, options, ...callerOf(run) })
}

/**
 * Code that requests runs because something happened: a message arrived (`push`), a poll found something (`poll`), an asset was
 * materialized or failed a check (`asset`), or a run ended (`run`).
 */
export const sensor = { push, poll, asset, run }

function checkSettings(
  kind: SensorKind,
  name: string,
  options: Omit<SensorSettings<unknown>, 'resources'> & Pick<ToldSettings<unknown>, 'maxTries'> & { resources?: unknown },
): void {
  checkedName(name, 'sensor')
  const owner = `sensor ${name}`
  if (typeof options !== 'object' || options === null)
    throw invalid('bad_options', `${owner} needs options`, `Write sensor.${kind.replace('_sensor', '')}('${name}', { … }).`)
  checkOptionNames(owner, options, sensorKinds[kind])
  const { description, timeout, select, resources, renamedFrom, enabled, maxTries } = options
  if (description !== undefined && (typeof description !== 'string' || description === ''))
    throw invalid('bad_sensor', `\`description\` of ${owner} cannot be ${show(description)}`, 'Write a non-empty string.')
  if (timeout !== undefined) durationWithin(timeout, evaluationBounds, `\`timeout\` of ${owner}`)
  if (select !== undefined && selectedKeys(select, owner).length === 0)
    throw invalid('bad_selection', `${owner} has an empty \`select\``, 'Write select: [orders], or remove `select`.')
  checkResources(owner, resources)
  if (renamedFrom !== undefined) checkedName(renamedFrom, 'sensor')
  if (enabled !== undefined && typeof enabled !== 'boolean')
    throw invalid('bad_sensor', `\`enabled\` of ${owner} cannot be ${show(enabled)}`, 'Write true or false.')
  checkWholeNumber('bad_sensor', `\`maxTries\` of ${owner}`, maxTries, {
    ...{ least: 1, most: 100 },
    hint: 'Write how many failed tries make an event a dead letter.',
  })
}

function checkHandler(name: string, { on }: { readonly on?: unknown }): void {
  if (typeof on === 'function') return
  throw invalid('bad_sensor', `sensor ${name} needs \`on\``, 'Write on: (event) => run(orders, { key: event.id }).')
}

function checkWatched(name: string, watch: Selection): void {
  if (watch !== undefined && selectedKeys(watch, `sensor ${name}`).length > 0) return
  throw invalid('bad_watch', `sensor ${name} needs something to \`watch\``, 'Write watch: [orders].')
}

function checkNames(name: string, option: string, given: unknown, known: readonly string[]): void {
  const names: readonly unknown[] = Array.isArray(given) ? given : []
  const isKnown = (one: unknown): boolean => known.some((each) => each === one)
  if (names.length > 0 && names.every(isKnown)) return
  throw invalid(
    `bad_${option}`,
    `\`${option}\` of sensor ${name} cannot be ${show(given)}`,
    `Write an array of one or more of ${known.map((each) => `'${each}'`).join(', ')}.`,
  )
}
