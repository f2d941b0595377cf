import { parquetMetadata } from 'hyparquet'
import { beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { sha256 } from '../../lib/hash.ts'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type CountingStore, countingStore } from '../../testing/counting-store.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { fileRef } from '../files/file-ref.ts'
import { mergeRows, sortedByKey } from '../fold/row-merge.ts'
import { decodeRows, encodeTableRows } from '../parquet/parquet.ts'
import { ROW_GROUP_ROWS } from '../parquet/write.ts'
import { sortedFileRef } from './index-footer.ts'
import { encodeSortedFile, mergeSortedFiles, SortedFileReader, scanSortedFile } from './sorted-file.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }

const ticks = defineTable({
  name: 'ticks',
  doc: 'For the tests.',
  key: ['schedule_id', 'number'],
  storage: { kind: 'cold', merge: [{ pick: 'largest', by: ['at'], columns: ['at', 'state'] }] },
  columns: {
    schedule_id: col.string('Schedule.'),
    number: col.int('Number.'),
    at: col.optional(col.timestamp('When.')),
    state: col.optional(col.string('State.')),
    tags: col.optional(col.map('Tags.')),
  },
})

const tick = (i: number, over: AnyRow = {}): AnyRow => ({
  schedule_id: `schedule-${String(Math.floor(i / 10)).padStart(6, '0')}`,
  number: i % 10,
  at: 1736935200000 + i,
  state: 'done',
  tags: null,
  row_version: `v${i}`,
  ...over,
})
const keyOfTick = (row: AnyRow) => [row['schedule_id'], row['number']] as const
const ticksFrom = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => tick(from + i * step))

async function stored(store: ObjectStore, path: string, rows: readonly AnyRow[]): Promise<SortedFileRef> {
  const bytes = encodeSortedFile(ticks, rows, scope)
  await store.create(path, bytes)
  return sortedFileRef(fileRef(path, bytes, rows.length), bytes, 0)
}

async function collect(rows: AsyncIterable<AnyRow>): Promise<AnyRow[]> {
  const all: AnyRow[] = []
  for await (const row of rows) all.push(row)
  return all
}

describe('looking up', () => {
  const rows = ticksFrom(0, 200_000).filter((_, i) => i % 10 !== 7)
  let store: CountingStore
  let ref: SortedFileRef

  beforeAll(async () => {
    store = countingStore(memoryStore())
    ref = await stored(store, 'ticks/1.parquet', rows)
  })

  test('a row is found by its whole key, with one read each for the footer, the filters and its row group', async () => {
    const reader = new SortedFileReader(store)
    const row = rows[123_456]!
    store.reset()
    expect(await reader.lookup(ticks, ref, [keyOfTick(row)])).toEqual([row])
    expect(store.count('getRange')).toBe(3)
    expect(store.count()).toBe(3)
    expect(store.bytesRead).toBeLessThan(ref.bytes / 5)
  })

  test('a manifest of an earlier version does not tell the size of the footer: it is guessed, and asked for again if that was too little', async () => {
    const { footer_bytes: _, ...older } = ref
    const row = rows[123_456]!
    for (const [reads, told] of [
      [3, older],
      [4, { ...older, rows: 1 }],
    ] as const) {
      store.reset()
      expect(await new SortedFileReader(store).lookup(ticks, told, [keyOfTick(row)])).toEqual([row])
      expect(store.count()).toBe(reads)
    }
  })

  test('what is not there costs the footer and the filters once, and then nothing', async () => {
    const reader = new SortedFileReader(store)
    const absent = Array.from({ length: 20 }, (_, i) => [`schedule-00500${i % 10}x`, i] as const)
    store.reset()
    expect(await reader.lookup(ticks, ref, [absent[0]!])).toEqual([undefined])
    expect(store.count()).toBe(2)
    store.reset()
    for (const key of absent.slice(1, 10)) expect(await reader.lookup(ticks, ref, [key])).toEqual([undefined])
    expect(store.count()).toBe(0)
  })

  test('keys before the first and after the last row need no filter', async () => {
    const reader = new SortedFileReader(store)
    store.reset()
    expect(
      await reader.lookup(ticks, ref, [
        ['a', 1],
        ['z', 1],
        ['schedule-019999', 10],
      ]),
    ).toEqual([undefined, undefined, undefined])
    expect(store.count()).toBe(1)
  })

  test('a batch of keys is answered in its order, with at most one read for each row group', async () => {
    const reader = new SortedFileReader(store)
    const picked = Array.from({ length: 1000 }, (_, i) => rows[(i * 7919) % rows.length]!)
    const keys = picked.flatMap((row) => [keyOfTick(row), [row['schedule_id'], 7] as const])
    store.reset()
    const found = await reader.lookup(ticks, ref, keys)
    expect(found).toEqual(picked.flatMap((row) => [row, undefined]))
    const groups = Math.ceil(rows.length / ROW_GROUP_ROWS)
    expect(store.count()).toBeLessThanOrEqual(groups + 3)
  })

  test('the first and the last row of every row group are found', async () => {
    const edges = rows.filter(
      (_, i) => i % ROW_GROUP_ROWS === 0 || i % ROW_GROUP_ROWS === ROW_GROUP_ROWS - 1 || i === rows.length - 1,
    )
    expect(await new SortedFileReader(store).lookup(ticks, ref, edges.map(keyOfTick))).toEqual(edges)
  })

  test('a reader with little memory finds the same, only with more reads', async () => {
    const reader = new SortedFileReader(store, { indexBytes: 1, rowGroups: 0 })
    store.reset()
    for (const i of [5, 5, 100_000]) expect(await reader.lookup(ticks, ref, [keyOfTick(rows[i]!)])).toEqual([rows[i]])
    expect(store.count()).toBe(9)
  })

  test('a row that was found is the finder’s own', async () => {
    const reader = new SortedFileReader(store)
    const [first] = await reader.lookup(ticks, ref, [keyOfTick(rows[0]!)])
    first!['state'] = 'changed'
    expect(await reader.lookup(ticks, ref, [keyOfTick(rows[0]!)])).toEqual([rows[0]])
  })

  test('a part of a key, or a key of the wrong type, is a bug of the caller', async () => {
    const reader = new SortedFileReader(store)
    for (const key of [['schedule-000001'], ['schedule-000001', '1'], [1, 1], ['schedule-000001', Number.NaN]]) {
      await expect(reader.lookup(ticks, ref, [key])).rejects.toMatchObject({ kind: 'bug', code: 'bad_key' })
    }
  })
})

test('several sorted files are searched at once and their versions of a row made one', async () => {
  const store = memoryStore()
  const refs = [
    await stored(store, '1', [tick(1, { state: 'old', tags: { a: 'b' } }), tick(2)]),
    await stored(store, '2', [tick(1, { at: 1736935299999, state: 'new' }), tick(3)]),
  ]
  const found = await new SortedFileReader(store).lookupMerged(
    ticks,
    refs,
    [1, 2, 3, 4].map((i) => keyOfTick(tick(i))),
  )
  expect(found).toEqual([tick(1, { at: 1736935299999, state: 'new', tags: { a: 'b' } }), tick(2), tick(3), undefined])
})

test('every row group has filters for all parts of the key, because the first part may tell nothing apart', async () => {
  const store = countingStore(memoryStore())
  const rows = Array.from({ length: 3000 }, (_, i) =>
    tick(0, { schedule_id: 'always-the-same', number: i * 2, row_version: 'v' }),
  )
  const ref = await stored(store, 'a', rows)
  const reader = new SortedFileReader(store)
  const odd = Array.from({ length: 500 }, (_, i) => ['always-the-same', i * 2 + 1] as const)
  await reader.lookup(ticks, ref, odd.slice(0, 1))
  store.reset()
  for (const key of odd) expect(await reader.lookup(ticks, ref, [key])).toEqual([undefined])
  // One row group, read once for the one in a hundred that a filter lets through.
  expect(store.count()).toBeLessThanOrEqual(1)
  const filtered = parquetMetadata((await store.get('a'))!).row_groups[0]!.columns.filter(
    (c) => c.meta_data!.bloom_filter_offset !== undefined,
  )
  expect(filtered.map((c) => c.meta_data!.path_in_schema[0])).toEqual(['schedule_id', 'number'])
})

describe('writing', () => {
  test('rows out of order, or twice the same key, are refused', () => {
    for (const rows of [
      [tick(2), tick(1)],
      [tick(1), tick(1)],
      [...ticksFrom(0, ROW_GROUP_ROWS), tick(5)],
    ]) {
      expect(() => encodeSortedFile(ticks, rows, scope)).toThrow(
        expect.objectContaining({ kind: 'bug', code: 'file_not_sorted' }),
      )
    }
  })

  test('a sorted file without rows can be searched and scanned', async () => {
    const store = memoryStore()
    const ref = await stored(store, 'empty', [])
    expect(await new SortedFileReader(store).lookup(ticks, ref, [keyOfTick(tick(1))])).toEqual([undefined])
    expect(await collect(scanSortedFile(store, ticks, ref))).toEqual([])
  })

  test('a sorted file is an ordinary file of its table', async () => {
    const rows = ticksFrom(0, 12_000)
    expect(await decodeRows(ticks, encodeSortedFile(ticks, rows, scope))).toEqual(rows)
  })
})

describe('merging', () => {
  test('sorted files and rows in memory become one sorted file with every key once', async () => {
    const store = memoryStore()
    const parts = [ticksFrom(0, 20_000), ticksFrom(5, 20_000, 7), ticksFrom(3, 40_000, 5)].map((rows, age) =>
      rows.map((row) => ({ ...row, at: row['at'] + age, state: `age ${age}`, row_version: `v${age}` })),
    )
    const refs: SortedFileRef[] = []
    for (const [i, rows] of parts.slice(0, 2).entries()) refs.push(await stored(store, `sorted-${i}`, rows))
    const { bytes, rows } = await mergeSortedFiles(store, ticks, scope, refs, parts[2]!.toReversed())
    const expected = sortedByKey(ticks, parts.flat())
    expect(rows).toBe(expected.length)
    expect(await decodeRows(ticks, bytes)).toEqual(expected.map((row) => mergeRows(ticks, row, { ...row })))
  })

  test('[S2] the same rows give the same bytes, however they were spread over sorted files', async () => {
    const store = memoryStore()
    const rows = ticksFrom(0, 12_345)
    const spread = [3, 5].map((ways) =>
      Array.from({ length: ways }, (_, way) => rows.filter((_, i) => (i * 31) % ways === way)),
    )
    const results: string[] = [sha256(encodeSortedFile(ticks, rows, scope))]
    for (const [i, parts] of spread.entries()) {
      const refs = await Promise.all(parts.map((part, way) => stored(store, `${i}-${way}`, part)))
      results.push(sha256((await mergeSortedFiles(store, ticks, scope, refs)).bytes))
      results.push(sha256((await mergeSortedFiles(store, ticks, scope, refs.toReversed().slice(1), parts.at(-1))).bytes))
    }
    expect(new Set(results).size).toBe(1)
  })

  test('rows that are not to be kept are left out, judged by what they were merged to', async () => {
    const store = memoryStore()
    const refs = [await stored(store, '1', ticksFrom(0, 100)), await stored(store, '2', [tick(3, { at: 2e12 })])]
    const { bytes, rows } = await mergeSortedFiles(store, ticks, scope, refs, [], {
      keep: (row) => row['at'] > 1e12 + 1e12 - 1,
    })
    expect(rows).toBe(1)
    expect(await decodeRows(ticks, bytes)).toMatchObject([{ number: 3, at: 2e12 }])
  })

  test('nothing to merge gives an empty sorted file', async () => {
    expect(await mergeSortedFiles(memoryStore(), ticks, scope, [])).toMatchObject({ rows: 0 })
  })

  test('a scan reads every byte of the file and no more than its footer twice', async () => {
    const store = countingStore(memoryStore())
    const rows = ticksFrom(0, 17_000)
    const ref = await stored(store, 'a', rows)
    store.reset()
    expect(await collect(scanSortedFile(store, ticks, ref))).toEqual(rows)
    // Footer, four row groups, and the end of the file for the checksum.
    expect(store.count('getRange')).toBe(6)
  })
})

describe('damage', () => {
  const rows = ticksFrom(0, 12_000)
  const bytes = encodeSortedFile(ticks, rows, scope)
  const groups = parquetMetadata(bytes).row_groups
  const ref = sortedFileRef(fileRef('ticks/base.parquet', bytes, rows.length), bytes, 0)
  const filterAt = Number(
    groups[0]!.columns.find((c) => c.meta_data!.bloom_filter_offset !== undefined)!.meta_data!.bloom_filter_offset,
  )

  async function damagedAt(...places: number[]): Promise<ObjectStore> {
    const store = memoryStore()
    const damaged = Uint8Array.from(bytes)
    for (const place of places) damaged[place]! ^= 0x10
    await store.create(ref.path, damaged)
    return store
  }

  test('one bit, wherever it is, is noticed by a look-up that touches it, never taken for "not there"', async () => {
    const footerText = Buffer.from(bytes).indexOf('first_key":["schedule-000500', filterAt)
    for (const place of [700, filterAt + 60, footerText + 20, bytes.length - 4]) {
      const store = await damagedAt(place)
      const look = new SortedFileReader(store).lookup(ticks, ref, rows.filter((_, i) => i % 50 === 0).map(keyOfTick))
      await expect(look, `byte ${place} of ${bytes.length}`).rejects.toMatchObject({
        kind: 'corrupt',
        facts: { path: ref.path },
      })
    }
  })

  test('a merge of a damaged file fails instead of passing the damage on', async () => {
    const padding = filterAt + 20
    for (const place of [3, 700, padding, bytes.length - 2000]) {
      const store = await damagedAt(place)
      await expect(mergeSortedFiles(store, ticks, scope, [ref]), `byte ${place}`).rejects.toMatchObject({ kind: 'corrupt' })
    }
  })

  test('a file that is gone or cut short is told so', async () => {
    const reader = new SortedFileReader(memoryStore())
    await expect(reader.lookup(ticks, ref, [keyOfTick(rows[0]!)])).rejects.toMatchObject({
      kind: 'corrupt',
      code: 'file_missing',
    })
    const short = memoryStore()
    await short.create(ref.path, bytes.subarray(0, 9000))
    await expect(new SortedFileReader(short).lookup(ticks, ref, [keyOfTick(rows[0]!)])).rejects.toMatchObject({
      kind: 'corrupt',
    })
    await expect(collect(scanSortedFile(short, ticks, ref))).rejects.toMatchObject({ kind: 'corrupt' })
  })

  test('a file that was not written as a sorted file is not searched as one', async () => {
    const store = memoryStore()
    const plain = encodeTableRows(ticks, rows, scope)
    await store.create('plain', plain)
    await expect(
      new SortedFileReader(store).lookup(ticks, sortedFileRef(fileRef('plain', plain, rows.length), plain, 0), [
        keyOfTick(rows[0]!),
      ]),
    ).rejects.toThrow(/plain .* not a sorted file/)
  })

  test('a failed read is not remembered', async () => {
    const store = memoryStore()
    const reader = new SortedFileReader(store)
    await expect(reader.lookup(ticks, ref, [keyOfTick(rows[0]!)])).rejects.toThrow(
      /ticks\/base\.parquet is missing, but the manifest names it/,
    )
    await store.create(ref.path, bytes)
    expect(await reader.lookup(ticks, ref, [keyOfTick(rows[0]!)])).toEqual([rows[0]])
  })
})
