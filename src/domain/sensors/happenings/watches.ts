import { assetKeyPattern } from '../../../contract/project-manifest.ts'
import type { SensorSource } from '../../../contract/sensor.ts'
import type { Rows } from '../../../model/rows.ts'
import type { SensorRow } from '../sensor-definitions.table.ts'
import { sensorWatches } from './sensor-watches.table.ts'

/** An asset key, `mart/*` for all assets below mart, or `*` for all assets. The fold needs no graph to match these. */
export const isWatchPattern = (text: string): boolean =>
  text === '*' || assetKeyPattern.test(text.endsWith('/*') ? text.slice(0, -2) : text)

type Watcher = Pick<SensorRow, 'sensor_id' | 'config' | 'watches' | 'enabled' | 'removed_at'>

/** True if happenings are kept for the sensor: it is one that watches, and neither disabled nor removed. */
export const isWatching = ({ config, enabled, removed_at }: Omit<Watcher, 'sensor_id' | 'watches'>): boolean =>
  (config.type === 'asset' || config.type === 'run') && enabled && removed_at === null

export function stopWatching(rows: Rows, sensor: Readonly<Watcher>): void {
  for (const subject of subjectsOf(sensor)) rows.hot(sensorWatches).remove(subject, sensor.sensor_id)
}

export function startWatching(rows: Rows, sensor: Readonly<Watcher>, eventId: string): void {
  const { sensor_id, config } = sensor
  const happenings = wantedBy(config)
  for (const subject of subjectsOf(sensor))
    rows.hot(sensorWatches).insert({ subject, sensor_id, happenings, row_version: eventId })
}

function wantedBy(config: SensorSource): string[] {
  if (config.type === 'asset') return [...config.happenings]
  return config.type === 'run' ? [...config.states] : []
}

function subjectsOf(sensor: Readonly<Watcher>): Set<string> {
  const { config } = sensor
  if (!isWatching(sensor)) return new Set()
  const watched = sensor.watches ?? ('assets' in config ? config.assets : null)
  return new Set(watched == null ? [config.type] : watched.map((pattern) => `${config.type}:${pattern}`))
}

/** True if no sensor watches anything, which is asked for every task that ends. */
export function isNothingWatched(rows: Rows): boolean {
  for (const _ of rows.hot(sensorWatches).all()) return false
  return true
}

/** The sensors that want to know this about one of the assets, each once. What it costs does not depend on how many there are. */
export function watchersOf(rows: Rows, type: 'asset' | 'run', assetKeys: Iterable<string>, happening: string): Set<string> {
  const found = new Set<string>()
  const watches = rows.hot(sensorWatches)
  const add = (subject: string): void => {
    for (const { sensor_id, happenings } of watches.under(subject)) if (happenings.includes(happening)) found.add(sensor_id)
  }
  if (type === 'run') add(type)
  const asked = new Set<string>()
  for (const key of assetKeys) for (const pattern of patternsOf(key)) asked.add(pattern)
  for (const pattern of asked) add(`${type}:${pattern}`)
  return found
}

/** The patterns that match a key: `a/b/c` is matched by itself, `a/b/*`, `a/*` and `*`. */
function patternsOf(key: string): string[] {
  const patterns = [key, '*']
  for (let slash = key.indexOf('/'); slash >= 0; slash = key.indexOf('/', slash + 1)) patterns.push(`${key.slice(0, slash)}/*`)
  return patterns
}

/** Refuses what the fold cannot match: a selection that needs the graph must have been resolved. */
export function checkWatches(
  { config, watches }: { readonly config: SensorSource; readonly watches?: readonly string[] | null | undefined },
  wrong: (path: (string | number)[], message: string) => void,
): void {
  const isWatcher = config.type === 'asset' || config.type === 'run'
  if (watches != null && !isWatcher) wrong(['watches'], `a ${config.type} sensor watches no assets`)
  const [path, watched] = watches == null ? [['config', 'assets'], isWatcher ? config.assets : null] : [['watches'], watches]
  for (const [index, pattern] of (watched ?? []).entries())
    if (!isWatchPattern(pattern))
      wrong(
        [...path, index],
        `${JSON.stringify(pattern)} is neither an asset key nor like mart/*. Name the assets that it means.`,
      )
}
