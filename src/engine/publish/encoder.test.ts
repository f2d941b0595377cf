import { describe, expect, test } from 'vitest'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import { sortedByKey } from '../fold/row-merge.ts'
import { decodeRows, encodeTableRows } from '../parquet/parquet.ts'
import { readFooter } from '../parquet/read.ts'
import { ROW_GROUP_ROWS } from '../parquet/write.ts'
import { encodeSortedFile } from '../sorted/sorted-file.ts'
import { encoderHere, encoderThread } from './encoder.ts'
import { copyFile, type FileToCopy, shapeOf } from './file-copy.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
const table = defineTable({
  name: 'samples',
  doc: 'For the tests.',
  key: ['id', 'number'],
  storage: { kind: 'hot' },
  columns: {
    id: col.string('Text.'),
    number: col.int('Int.'),
    big: col.long('Long.'),
    real: col.optional(col.double('Double.')),
    flag: col.optional(col.boolean('Boolean.')),
    at: col.timestamp('Timestamp.'),
    list: col.strings('Strings.'),
    tags: col.map('Map.'),
    data: col.optional(col.json('Json.')),
    same: col.string('Text.'),
    nothing: col.optional(col.string('Text.')),
  },
}) as Table

/** In no order. */
const rows: AnyRow[] = Array.from({ length: ROW_GROUP_ROWS + 9 }, (_, i) => ({
  id: `${(i * 7919) % 1000}${i % 11 === 0 ? '😀' : ''}`,
  number: i,
  big: 2 ** 40 + i,
  real: i % 3 === 0 ? null : i / 7,
  flag: i % 5 === 0 ? null : i % 2 === 0,
  at: 1_736_935_200_000 + i,
  list: i % 4 === 0 ? [] : ['a', `${i}`],
  tags: i % 6 === 0 ? {} : { b: `${i}`, a: 'x' },
  data: i % 2 === 0 ? null : { i, deep: [true, null] },
  same: 'same',
  nothing: null,
  row_version: 'v',
}))

const file = (over: Partial<FileToCopy> = {}) => copyFile({ table, scope, rows, ...over })

describe('files encoded in a thread of their own', () => {
  test('have the bytes they would have had without, whatever is in their rows and in whatever order those come', async () => {
    const encoder = encoderThread({ worthAHop: 2 })
    const sorted = sortedByKey(table, rows)
    expect(Buffer.compare(await encoder.encode(file()), encodeTableRows(table, sorted, scope))).toBe(0)
    const zstd = await encoder.encode(file({ codec: 'zstd' }))
    expect(Buffer.compare(zstd, encodeTableRows(table, sorted, scope, { codec: 'zstd' }))).toBe(0)
    const encoded = await encoder.encode(file({ codec: 'zstd', isSortedFile: true }))
    expect(Buffer.compare(encoded, encodeSortedFile(table, sorted, scope))).toBe(0)
    expect(await decodeRows(table, zstd)).toEqual(sorted)
  })

  test('of a table that is read by column end their row groups where a merge would', async () => {
    const encoder = encoderThread({ worthAHop: 2 })
    const digested = { ...table, digest: ['same'] } as Table
    const owned = rows.map((row, i) => ({ ...row, id: i % 7 === 0 ? 'b' : i % 3 === 0 ? 'c' : 'a' }))
    const encoded = await encoder.encode(file({ table: digested, rows: owned, codec: 'zstd', isSortedFile: true }))
    expect(Buffer.compare(encoded, encodeSortedFile(digested, sortedByKey(table, owned), scope))).toBe(0)
    const { groups } = readFooter(digested, encoded, 'sorted')
    expect(groups.map((group) => group.rows)).toEqual([2_862, 2_147])
  })

  test('hold rows as they were when they were copied', async () => {
    const encoder = encoderThread({ worthAHop: 2 })
    const changing = structuredClone(rows.slice(1, 4))
    const copy = file({ rows: changing })
    for (const row of changing) {
      row['same'] = 'changed'
      row['list'].push('changed')
      row['tags'].a = 'changed'
    }
    expect(await decodeRows(table, await encoder.encode(copy))).toEqual(sortedByKey(table, rows.slice(1, 4)))
  })

  test('may be asked for all at once, and each gets its own', async () => {
    const encoder = encoderThread({ worthAHop: 2 })
    const parts = [1, 2, 3, 400, 5].map((count) => rows.slice(0, count))
    const files = await Promise.all(parts.map((part) => encoder.encode(file({ rows: part }))))
    for (const [i, part] of parts.entries())
      expect(Buffer.compare(files[i]!, encodeTableRows(table, sortedByKey(table, part), scope))).toBe(0)
  })

  test.each([
    ['a value that its column cannot hold', { number: 1.5 }, 'bad_row'],
    ['a value that no thread can be sent', { number: 4, same: () => 1 }, 'bad_row'],
    ['a key that is there already', { number: 2 }, 'key_twice'],
  ])('are refused for %s, and the next one is made', async (_, wrong, code) => {
    const encoder = encoderThread({ worthAHop: 2 })
    const bad = file({ rows: [...rows.slice(0, 3), { ...rows[2], ...wrong }] })
    await expect(encoder.encode(bad)).rejects.toMatchObject({ kind: 'bug', code })
    expect(Buffer.compare(await encoder.encode(file()), encodeTableRows(table, sortedByKey(table, rows), scope))).toBe(0)
  })

  test('are made in another thread after one was ended to give its memory back', async () => {
    const encoder = encoderThread({ worthAHop: 2 })
    const expected = encodeTableRows(table, sortedByKey(table, rows), scope)
    for (const _ of [1, 2]) {
      expect(Buffer.compare(await encoder.encode(file()), expected)).toBe(0)
      expect(encoder.isReady).toBe(true)
      encoder.rest?.()
      expect(encoder.isReady).toBe(false)
    }
    // Not while somebody waits for it.
    const encoding = encoder.encode(file())
    encoder.rest?.()
    expect(Buffer.compare(await encoding, expected)).toBe(0)
  })

  test('are made all the same when the thread has ended', async () => {
    const endsWhenAsked = `data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => process.exit())`
    const encoder = encoderThread({ worthAHop: 2, program: new URL(endsWhenAsked) })
    const expected = encodeTableRows(table, sortedByKey(table, rows), scope)
    const both = await Promise.all([encoder.encode(file()), encoder.encode(file())])
    for (const bytes of [...both, await encoder.encode(file())]) expect(Buffer.compare(bytes, expected)).toBe(0)
    expect(encoder.isReady).toBe(false)
  })

  test('that are merged have the bytes of all their rows encoded at once, in the thread and without it', async () => {
    const history = { ...table, history: { groupRows: 100, filters: ['same', 'list'] } }
    const expected = encodeSortedFile(history, sortedByKey(table, rows), scope)
    const parts = [0, 1, 2].map((part) => sortedByKey(table, rows.slice(part * 2_000, (part + 1) * 2_000)))
    const files = parts.map((part, i) => ({ path: `${i}`, bytes: encodeSortedFile(history, part, scope) }))
    const work = { table: shapeOf(history), scope, files, rows: rows.length }
    expect(Buffer.compare(await encoderHere.merge(work), expected)).toBe(0)
    // The thread is started for it.
    const encoder = encoderThread({ worthAHop: 2 })
    expect(Buffer.compare(await encoder.merge(work), expected)).toBe(0)
    expect(encoder.isReady).toBe(true)
    const [merged, encoded] = await Promise.all([encoder.merge(work), encoder.encode(file({ rows: rows.slice(0, 9) }))])
    expect(Buffer.compare(merged, expected)).toBe(0)
    expect(Buffer.compare(encoded, encodeTableRows(table, sortedByKey(table, rows.slice(0, 9)), scope))).toBe(0)
    const broken = encoderThread({ worthAHop: 2, program: new URL('data:text/javascript,throw new Error()') })
    expect(Buffer.compare(await broken.merge(work), expected)).toBe(0)
  })

  test('that are merged and have a key twice are refused', async () => {
    const one = { path: 'one', bytes: encodeSortedFile(table, sortedByKey(table, rows.slice(0, 9)), scope) }
    const work = { table: shapeOf(table), scope, files: [one, one], rows: 18 }
    await expect(encoderHere.merge(work)).rejects.toMatchObject({ kind: 'bug', code: 'key_twice' })
  })
})
