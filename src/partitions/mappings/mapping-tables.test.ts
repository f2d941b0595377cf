import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { toMs } from '../../lib/time.ts'
import { partitionDefinition } from '../definition.ts'
import { valuesByDimension, writeKey } from '../key.ts'
import { concat, keysOf } from '../key-list.ts'
import { type PartitionSet, partitionSet } from '../partition-set.ts'
import { defaultMapping } from './default-mapping.ts'
import { downstreamOf, type PartitionMapping, partitionMapping, upstreamOf } from './mapping.ts'

function table<Row>(name: string): Row[] | undefined {
  const file = path.resolve(import.meta.dirname, '../../../../shared/tables', name)
  if (fs.existsSync(file)) return JSON.parse(fs.readFileSync(file, 'utf8'))
  console.warn(`${file} is not there: what Dagster maps is not compared.`)
  return undefined
}

interface TimeWindow {
  cron: string
  timezone: string
  fmt: string
  start: string
  end: string | null
  end_offset: number
  exclusions: string[] | null
}
type Definition =
  | (TimeWindow & { type: 'time_window' })
  | { type: 'static'; keys: string[] }
  | { type: 'multi'; dimensions: Record<string, Definition> }

const fromTime = ({ cron, timezone, fmt, start, end, end_offset, exclusions }: TimeWindow) => ({
  ...{ type: 'cron', cron, timezone, format: fmt, start: toMs(start), end_offset, exclusions },
  end: end === null ? null : toMs(end),
})

function fromDagster(definition: Definition): unknown {
  if (definition.type === 'time_window') return fromTime(definition)
  if (definition.type === 'static') return { type: 'keys', keys: definition.keys }
  const dimensions = Object.entries(definition.dimensions).map(([name, of]) => [name, fromDagster(of)])
  return { type: 'multi', dimensions: Object.fromEntries(dimensions) }
}

const setOf = (definition: unknown, now: string): PartitionSet =>
  partitionSet(partitionDefinition.parse(definition), { nowMs: toMs(now), dynamicKeys: () => [] })

describe('a time window mapping', () => {
  interface Row {
    direction: 'downstream_to_upstream' | 'upstream_to_downstream'
    upstream: TimeWindow
    downstream: TimeWindow
    start_offset: number
    end_offset: number
    now: string
    downstream_key: string
    upstream_count: number
    upstream_first: string | null
    upstream_last: string | null
    required_but_nonexistent: string[]
    upstream_key: string
    downstream_count: number
    downstream_first: string | null
    downstream_last: string | null
  }
  const rows = table<Row>('partition_mapping.json')

  test.skipIf(rows === undefined)('[shared tables] takes the windows that Dagster takes, and misses those it misses', () => {
    const wrong = (rows as Row[]).filter((row) => {
      const { start_offset, end_offset } = row
      const sets = { upstream: setOf(fromTime(row.upstream), row.now), downstream: setOf(fromTime(row.downstream), row.now) }
      const mapping = partitionMapping.parse({ type: 'time_window', start_offset, end_offset })
      if (row.direction === 'upstream_to_downstream') {
        const found = concat(downstreamOf(mapping, sets, row.upstream_key))
        return !sameEnds(found, row.downstream_count, row.downstream_first, row.downstream_last)
      }
      const { ranges, missing } = upstreamOf(mapping, sets, row.downstream_key)
      const expected = row.required_but_nonexistent
      const cut = expected.at(-1) === '...'
      const told = [...keysOf(missing, 0, cut ? expected.length - 1 : undefined), ...(cut ? ['...'] : [])]
      const sameMissing = JSON.stringify(told) === JSON.stringify(expected)
      return !sameMissing || !sameEnds(concat(ranges), row.upstream_count, row.upstream_first, row.upstream_last)
    })
    expect(wrong).toEqual([])
  })

  function sameEnds(found: ReturnType<typeof concat>, count: number, first: string | null, last: string | null): boolean {
    if (found.count !== count) return false
    return count === 0 || (found.at(0) === first && found.at(count - 1) === last)
  }
})

describe('a mapping of keys and dimensions', () => {
  type Simple =
    | { type: 'IdentityPartitionMapping' | 'AllPartitionMapping' | 'LastPartitionMapping' }
    | { type: 'TimeWindowPartitionMapping'; start_offset: number; end_offset: number }
    | { type: 'SpecificPartitionsPartitionMapping'; partition_keys: string[] }
    | { type: 'StaticPartitionMapping'; downstream_partition_keys_by_upstream_partition_key: Record<string, string | string[]> }
  type Mapping =
    | Simple
    | { type: 'MultiToSingleDimensionPartitionMapping'; partition_dimension_name: string | null }
    | {
        type: 'MultiPartitionMapping'
        downstream_mappings_by_upstream_dimension: Record<string, { dimension_name: string; partition_mapping: Simple }>
      }
  interface Row {
    direction: 'downstream_to_upstream' | 'upstream_to_downstream'
    mapping: Mapping
    now: string | null
    upstream_def: Definition
    downstream_def: Definition
    input_keys: string[]
    output_keys: string[]
    required_but_nonexistent?: string[]
  }
  const rows = table<Row>('partition_mapping_other.json')

  function simple(mapping: Simple): unknown {
    switch (mapping.type) {
      case 'TimeWindowPartitionMapping':
        return { type: 'time_window', start_offset: mapping.start_offset, end_offset: mapping.end_offset }
      case 'SpecificPartitionsPartitionMapping':
        return { type: 'specific', keys: mapping.partition_keys }
      case 'StaticPartitionMapping':
        return { type: 'static', keys: mapping.downstream_partition_keys_by_upstream_partition_key }
      default:
        return { type: mapping.type.replace('PartitionMapping', '').toLowerCase() }
    }
  }

  function mappingOf({ mapping }: Row, downstream: PartitionSet, upstream: PartitionSet): PartitionMapping {
    if (mapping.type === 'MultiToSingleDimensionPartitionMapping') {
      const dimension = mapping.partition_dimension_name
      if (dimension !== null) return partitionMapping.parse({ type: 'dimension', dimension })
      return defaultMapping(downstream.definition, upstream.definition).mapping as PartitionMapping
    }
    if (mapping.type !== 'MultiPartitionMapping') return partitionMapping.parse(simple(mapping))
    const dimensions = Object.entries(mapping.downstream_mappings_by_upstream_dimension).map(([name, of]) => [
      name,
      { dimension: of.dimension_name, mapping: simple(of.partition_mapping) },
    ])
    return partitionMapping.parse({ type: 'multi', dimensions: Object.fromEntries(dimensions) })
  }

  /** Dagster joins the values of the dimensions, by sorted name, with `|`. */
  const names = (set: PartitionSet) => set.dimensions.map(({ name }) => name)
  const ours = (set: PartitionSet, key: string) => {
    const values = key.split('|').map((value, i) => [names(set)[i], value])
    return names(set).length === 0 ? key : writeKey(Object.fromEntries(values))
  }
  const theirs = (set: PartitionSet, key: string) =>
    names(set).length === 0
      ? key
      : names(set)
          .map((name) => valuesByDimension(names(set), key)[name])
          .join('|')

  test.skipIf(rows === undefined)('[shared tables] takes the partitions that Dagster takes', () => {
    for (const row of rows as Row[]) {
      const now = row.now ?? '2023-06-01T00:00:00Z'
      const [downstream, upstream] = [row.downstream_def, row.upstream_def].map((it) => setOf(fromDagster(it), now))
      const sets = { downstream: downstream as PartitionSet, upstream: upstream as PartitionSet }
      const mapping = mappingOf(row, sets.downstream, sets.upstream)
      const down = row.direction === 'upstream_to_downstream'
      const [from, to] = down ? [sets.upstream, sets.downstream] : [sets.downstream, sets.upstream]
      const found = row.input_keys.map((key) =>
        down
          ? { keys: concat(downstreamOf(mapping, sets, ours(from, key))), missing: concat([]) }
          : {
              keys: concat(upstreamOf(mapping, sets, ours(from, key)).ranges),
              missing: upstreamOf(mapping, sets, ours(from, key)).missing,
            },
      )
      const keys = new Set(found.flatMap(({ keys }) => [...keysOf(keys)].map((key) => theirs(to, key))))
      expect([...keys].sort(), JSON.stringify(row)).toEqual([...row.output_keys].sort())
      expect(found.flatMap(({ missing }) => [...keysOf(missing)])).toEqual(row.required_but_nonexistent ?? [])
    }
  })
})
