import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type PartitionMapping, partitionMapping } from '../../partitions/mappings/mapping.ts'
import { asset, command, table } from '../declare/asset.ts'
import { describeProject } from '../project/describe.ts'
import { graphProblems } from '../project/graph-problems.ts'
import { partitionProblems } from '../project/partition-problems.ts'
import { previous, type Upstream } from './mapped.ts'
import { type AnyPartitions, daily, keys, monthly, multi } from './partitions.ts'

const day = daily({ start: '2025-01-01' })
const region = keys(['eu', 'us'])
const cube = multi({ day, region })
const shifts = multi({ day, shipped: day })

const sold = asset('sold', { partitions: day, run: () => 1 })
const perRegion = asset('per-region', { partitions: region, run: () => 1 })
const perCube = asset('per-cube', { partitions: cube, run: () => 1 })

const describing = { config: { project: 'shop', dirs: ['assets'] } }
const manifestOf = (...assets: object[]) => describeProject(assets, describing)

/** What is recorded of a dependency of an asset with these partitions. */
function recorded(dep: Upstream, partitions?: AnyPartitions): PartitionMapping {
  const below = asset('below', { deps: [dep], ...(partitions && { partitions }), run: () => {} })
  const manifest = manifestOf(below, sold, perRegion, perCube)
  expect(partitionProblems(manifest)).toEqual([])
  const [found] = manifest.assets.find(({ asset_key }) => asset_key === 'below')?.deps ?? []
  return partitionMapping.parse(found?.mapping)
}

const before = { type: 'time_window', start_offset: -1, end_offset: -1 }
const same = { type: 'identity' }

describe('the partitions of an asset that are meant can be said', () => {
  test.each<[string, Upstream, AnyPartitions | undefined, object]>([
    ['a window before', sold.offset(-1), day, before],
    ['the last seven days', sold.window({ from: -6, to: 0 }), day, { ...before, start_offset: -6, end_offset: 0 }],
    ['the newest', sold.last(), undefined, { type: 'last' }],
    ['one by its key', sold.at('2025-01-05'), region, { type: 'specific', keys: ['2025-01-05'] }],
    ['some', perRegion.at(['eu', 'us', 'eu']), undefined, { type: 'specific', keys: ['eu', 'us'] }],
    [
      'one of several dimensions, however written',
      perCube.at({ region: 'eu', day: '2025-01-05' }),
      undefined,
      { type: 'specific', keys: ['day=2025-01-05,region=eu'] },
    ],
    [
      'by a table',
      perRegion.map({ berlin: 'eu', rome: 'eu', everywhere: ['eu', 'us'] }),
      keys(['berlin', 'rome', 'everywhere']),
      { type: 'static', keys: { eu: ['berlin', 'rome', 'everywhere'], us: ['everywhere'] } },
    ],
    ['all', perCube.all(), undefined, { type: 'all' }],
    ['all along a dimension', perCube.all('region'), day, { type: 'dimension', dimension: 'day', mapping: same }],
    [
      'all along a dimension, of windows that overlap',
      perCube.all('region'),
      monthly({ start: '2025-01' }),
      { type: 'dimension', dimension: 'day' },
    ],
    [
      'the window before, of the same region',
      perCube.offset(-1),
      cube,
      {
        type: 'multi',
        dimensions: { day: { dimension: 'day', mapping: before }, region: { dimension: 'region', mapping: same } },
      },
    ],
    ['the window before, of all regions', perCube.offset(-1), day, { type: 'dimension', dimension: 'day', mapping: before }],
    ['the window before, for each region', sold.offset(-1), cube, { type: 'dimension', dimension: 'day', mapping: before }],
    [
      'the window before along one of two times',
      asset('x', { partitions: shifts, run: () => 1 }).offset(-1, 'shipped'),
      shifts,
      {
        type: 'multi',
        dimensions: { day: { dimension: 'day', mapping: same }, shipped: { dimension: 'shipped', mapping: before } },
      },
    ],
  ])('%s', (_, dep, partitions, mapping) => {
    expect(recorded(dep, partitions)).toEqual(mapping)
  })
})

describe('an asset that is made from its own past', () => {
  const stock = asset('stock', { partitions: day, inputs: { before: previous<number>(), sold }, run: () => 1 })

  test('depends on its own window before', () => {
    expect(manifestOf(stock, sold).assets[1]?.inputs?.['before']).toEqual({ asset_key: 'stock', mapping: before })
    expect(recorded(previous(7), day)).toEqual({ ...before, start_offset: -7, end_offset: -7 })
    expect(recorded(previous(), cube)).toMatchObject({ type: 'multi', dimensions: { day: { mapping: before } } })
  })

  test('waits for nobody in a circle, whether it is a value, a table or a program', () => {
    const rows = table('rows', { partitions: cube, schema: z.object({}), inputs: { before: previous() }, run: () => [] })
    const program = command('program', { partitions: day, deps: [previous()], run: ['true'] })
    const manifest = manifestOf(stock, sold, rows, program)
    expect([...graphProblems(manifest), ...partitionProblems(manifest)]).toEqual([])
  })

  test('is in a circle if it names itself without saying when', () => {
    const circle = asset('circle', { partitions: day, deps: ['circle'], run: () => 1 })
    expect(graphProblems(manifestOf(circle))).toMatchObject([{ code: 'cycle', message: /circle → circle/ }].map(loosely))
  })
})

const loosely = ({ code, message }: { code: string; message: RegExp }) => ({ code, message: expect.stringMatching(message) })
