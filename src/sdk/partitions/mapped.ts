import { isTime } from '../../partitions/definition.ts'
import { type AnyAsset, type carries, isAsset } from '../any-asset.ts'
import { optionsOf } from '../declaration.ts'
import { invalid, show } from '../invalid.ts'
import { checkOptionNames } from '../option-names.ts'
import { partitionText } from './partition-key.ts'
import type { AnyPartitions, PartitionData } from './partitions.ts'

/** How many values an input is: one, several, one for each partition that is made, or what the windows of both make of it. */
export type Takes = 'one' | 'many' | 'each' | 'windows'

/** An asset and which of its partitions are meant. */
export interface Mapped<Value = unknown, P = unknown, T extends Takes = Takes, Along = unknown, Down = unknown> {
  readonly asset: AnyAsset
  readonly mapping: MappingData
  /** True if code gets a Map; undefined where that depends on the windows of both assets. */
  readonly many: boolean | undefined
  readonly [carries]?: {
    readonly value: Value
    readonly partitions: P
    readonly takes: T
    readonly along: Along
    readonly down: Down
  }
}

/** The asset that is being declared, some windows ago. */
export interface Own<Value> {
  readonly own: true
  readonly mapping: MappingData
  readonly [carries]?: { readonly value: Value; readonly own: true }
}

/** A mapping as its author wrote it. */
export type MappingData =
  | {
      readonly type: 'time_window'
      readonly start_offset: number
      readonly end_offset: number
      /** Of several dimensions, the one whose windows are counted; the others stay as they are. */
      readonly dimension?: string
    }
  | { readonly type: 'all'; readonly dimension?: string }
  | { readonly type: 'last' }
  | { readonly type: 'specific'; readonly keys: readonly string[] }
  /** Upstream key → the downstream keys it is for. */
  | { readonly type: 'static'; readonly keys: Readonly<Record<string, readonly string[]>> }

/** The methods of an asset that choose among its partitions. */
export function wordsOf(asset: AnyAsset): Record<string, (...args: never[]) => Mapped> {
  const partitions = (): PartitionData => {
    const { partitions } = optionsOf<{ partitions?: AnyPartitions }>(asset)
    if (partitions !== undefined) return partitions.data
    throw invalid('not_partitioned', `${asset.key} has no partitions`, `Use ${asset.key} without a mapping.`)
  }
  const mapped = (mapping: MappingData, many?: boolean): Mapped => ({ asset, mapping, many })
  const keyText = (key: unknown): string => checkedKey(asset, key)
  return {
    offset(windows: number, along?: string) {
      const counted = { start_offset: windows, end_offset: windows, ...alongTime(asset.key, partitions(), along) }
      if (!Number.isSafeInteger(windows))
        throw invalid('bad_offset', `${asset.key}.offset(${show(windows)}) needs a whole number`, 'Write .offset(-1).')
      return mapped({ type: 'time_window', ...counted })
    },
    window(range: { from: number; to: number }, along?: string) {
      const time = alongTime(asset.key, partitions(), along)
      const { from, to } = range ?? {}
      checkOptionNames(`${asset.key}.window()`, range ?? {}, ['from', 'to'])
      if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to) || from > to)
        throw invalid(
          'bad_offset',
          `${asset.key}.window(${show(range)}) needs two whole numbers, the smaller one first`,
          'Write .window({ from: -6, to: 0 }) for seven windows, the last of them its own.',
        )
      return mapped({ type: 'time_window', start_offset: from, end_offset: to, ...time }, true)
    },
    all(dimension?: string) {
      const data = partitions()
      if (dimension !== undefined) refuseUnknown(asset.key, data, dimension, '.all()')
      return mapped({ type: 'all', ...(dimension === undefined ? {} : { dimension }) }, true)
    },
    last() {
      partitions()
      return mapped({ type: 'last' }, false)
    },
    at(asked: unknown) {
      partitions()
      const keys = (Array.isArray(asked) ? asked : [asked]).map(keyText)
      if (keys.length === 0)
        throw invalid('bad_key', `${asset.key}.at([]) names no partition`, 'Name at least one, or remove the input.')
      return mapped({ type: 'specific', keys: [...new Set(keys)] }, Array.isArray(asked))
    },
    map(table: Readonly<Record<string, unknown>>) {
      partitions()
      const entries = typeof table === 'object' && table !== null ? Object.entries(table) : []
      if (entries.length === 0)
        throw invalid('bad_map', `${asset.key}.map(${show(table)}) maps nothing`, "Write .map({ berlin: 'eu', boston: 'us' }).")
      const keys = new Map<string, string[]>()
      for (const [down, up] of entries) {
        for (const key of new Set((Array.isArray(up) ? up : [up]).map(keyText))) {
          const downs = keys.get(key)
          if (downs === undefined) keys.set(key, [down])
          else downs.push(down)
        }
      }
      const many = entries.some(([, up]) => Array.isArray(up)) ? true : undefined
      return mapped({ type: 'static', keys: Object.fromEntries(keys) }, many)
    },
  }
}

/**
 * The asset that is being declared, `windows` windows ago, for an asset that needs its own past. It is undefined before the first window.
 * A table knows its rows by its schema; for other values write the type: `previous<number>()`.
 */
export function previous<Value = unknown>(windows = 1, along?: string): Own<Value> {
  if (!Number.isSafeInteger(windows) || windows < 1)
    throw invalid(
      'bad_offset',
      `previous(${show(windows)}) needs a whole number of at least 1`,
      'Write previous(), or previous(7).',
    )
  const counted = { start_offset: -windows, end_offset: -windows, ...(along === undefined ? {} : { dimension: along }) }
  return { own: true, mapping: { type: 'time_window', ...counted } }
}

/** Refuses a `previous` that these partitions cannot have. */
export function checkOwn(key: string, { mapping }: Own<unknown>, partitions: AnyPartitions | undefined): void {
  if (partitions === undefined)
    throw invalid(
      'not_partitioned',
      `${key} has no partitions, so it has no previous one`,
      'Give it time partitions, such as daily().',
    )
  alongTime(key, partitions.data, mapping.type === 'time_window' ? mapping.dimension : undefined)
}

/** The dimension whose windows are counted, where it must be named. */
function alongTime(key: string, data: PartitionData, along: string | undefined): { dimension?: string } {
  if (along !== undefined) refuseUnknown(key, data, along, 'no name')
  const dimensions = data.type === 'multi' ? data.dimensions : { '': data }
  const time = Object.entries(dimensions).flatMap(([name, dimension]) => (isTime(dimension) ? [name] : []))
  const [only, another] = along === undefined ? time : time.filter((name) => name === along)
  if (only === undefined)
    throw invalid(
      'no_windows',
      `${along === undefined ? key : `dimension ${along} of ${key}`} has no time windows`,
      "Use .all(), .last(), .at('key') or .map({ … }).",
    )
  if (another !== undefined)
    throw invalid(
      'bad_dimension',
      `${key} has several time dimensions: ${time.join(', ')}`,
      `Name one: .offset(-1, '${only}'), .window({ from: -6, to: 0 }, '${only}') or previous(1, '${only}').`,
    )
  return data.type === 'multi' ? { dimension: only } : {}
}

function refuseUnknown(key: string, data: PartitionData, dimension: string, instead: string): void {
  const known = data.type === 'multi' ? Object.keys(data.dimensions) : []
  if (known.includes(dimension)) return
  throw invalid(
    'bad_dimension',
    `${key} has no dimension ${show(dimension)}`,
    known.length > 0 ? `It has ${known.join(', ')}.` : `It has one dimension: write ${instead}.`,
  )
}

function checkedKey(asset: AnyAsset, key: unknown): string {
  const { partitions } = optionsOf<{ partitions: AnyPartitions }>(asset)
  if (partitions.key.safeParse(key).success) return partitionText(key).key
  throw invalid('bad_key', `${show(key)} is not a partition of ${asset.key}`, 'Write one of its partition keys.')
}

export function isMapped(value: unknown): value is Mapped {
  return typeof value === 'object' && value !== null && 'mapping' in value && 'asset' in value && isAsset(value.asset)
}

export function isOwn(value: unknown): value is Own<unknown> {
  return typeof value === 'object' && value !== null && 'own' in value && value.own === true && 'mapping' in value
}

export type Upstream = AnyAsset | Mapped | Own<unknown>

/** The asset that an input or a dependency of `self` means, and which partitions of it. */
export function upstream(
  declared: Upstream,
  self: AnyAsset,
): { asset: AnyAsset; mapping?: MappingData; many?: boolean | undefined } {
  if (isOwn(declared)) return { asset: self, mapping: declared.mapping, many: false }
  return isMapped(declared) ? declared : { asset: declared }
}
