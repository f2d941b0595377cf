import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import { fileRef } from '../files/file-ref.ts'
import { compareKeys, keyOf } from '../fold/row-merge.ts'
import { sortedFileRef } from '../sorted/index-footer.ts'
import { encodeSortedFile, SortedFileReader } from '../sorted/sorted-file.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
const seed = Number(process.env['SEED'] ?? Date.now())

const shape = {
  name: 'samples',
  doc: 'For the tests.',
  key: ['id', 'number'],
  storage: { kind: 'cold', merge: [] },
  columns: {
    id: col.string('Text.'),
    number: col.int('Int.'),
    word: col.optional(col.string('Text.')),
    big: col.optional(col.long('Long.')),
    real: col.optional(col.double('Double.')),
    flag: col.optional(col.boolean('Boolean.')),
    at: col.optional(col.timestamp('Timestamp.')),
    list: col.optional(col.strings('Strings.')),
    tags: col.optional(col.map('Map.')),
    items: col.strings('Strings.'),
    data: col.optional(col.json('Json.')),
  },
} as const
const plain = defineTable(shape) as Table
/** Read by column: moments are differences, and columns are one page each. */
const digested = defineTable({ ...shape, digest: ['at'] }) as Table

async function foundIn(table: Table, rows: readonly AnyRow[], readAs = table): Promise<(AnyRow | undefined)[]> {
  const store = memoryStore()
  const bytes = encodeSortedFile(table, rows, scope)
  await store.create('sorted.parquet', bytes)
  const ref = sortedFileRef(fileRef('sorted.parquet', bytes, rows.length), bytes, 0)
  return await new SortedFileReader(store).lookup(
    readAs,
    ref,
    rows.map((row) => keyOf(table, row)),
  )
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const texts = fc.array(text, { maxLength: 3 })
const sample = fc.record({
  id: text,
  number: fc.integer({ min: -9, max: 9 }),
  word: fc.option(fc.oneof(fc.constantFrom('a', 'b'), text)),
  big: fc.option(fc.maxSafeInteger()),
  real: fc.option(fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0)),
  flag: fc.option(fc.boolean()),
  at: fc.option(fc.integer({ min: 0, max: 4e12 })),
  list: fc.option(texts),
  tags: fc.option(fc.dictionary(fc.constantFrom('x', 'y', 'z'), text).map((tags) => ({ ...tags }))),
  items: texts,
  data: fc.option(fc.oneof(fc.record({ deep: texts }), text)),
})
const sorted = (rows: readonly AnyRow[]): AnyRow[] => rows.toSorted((a, b) => compareKeys(plain, a, b))

describe('rows that are looked up', () => {
  test(`are the rows that were written, whatever is null, empty or the same in all of them (seed ${seed})`, async () => {
    const rows = fc
      .tuple(fc.uniqueArray(sample, { selector: ({ id, number }) => `${id}\0${number}`, minLength: 1, maxLength: 30 }), sample)
      .chain(([list, same]) =>
        // Some columns are the same in all rows: null, empty or not.
        fc.subarray(Object.keys(shape.columns).slice(2)).map((names) =>
          sorted(
            list.map((row) => ({
              ...row,
              ...Object.fromEntries(names.map((name) => [name, (same as AnyRow)[name]])),
              row_version: 'v',
            })),
          ),
        ),
      )
    await fc.assert(
      fc.asyncProperty(rows, async (written) => {
        for (const table of [plain, digested]) expect(await foundIn(table, written)).toEqual(written)
      }),
      { seed, numRuns: 80 },
    )
  })

  const numbered = (count: number, over: (i: number) => AnyRow): AnyRow[] =>
    Array.from({ length: count }, (_, i) => ({
      ...Object.fromEntries(Object.keys(shape.columns).map((name) => [name, null])),
      id: 'x',
      number: i,
      items: [],
      row_version: 'v',
      ...over(i),
    }))

  test('may have columns of megabytes', async () => {
    const long = 'y'.repeat(600)
    const rows = numbered(4_000, (i) => ({ word: `${long}${i}`, data: i % 2 === 0 ? { long, i } : null }))
    for (const table of [plain, digested]) expect(await foundIn(table, rows)).toEqual(rows)
  })

  test('of an older file have nothing in columns that came later, and must have what every row must', async () => {
    const { big: _, ...columns } = shape.columns
    const older = defineTable({ ...shape, columns }) as Table
    const rows = numbered(3, (i) => ({ word: i === 1 ? null : 'w' }))
    expect(await foundIn(older, rows, plain)).toEqual(rows)
    const stricter = defineTable({ ...shape, columns: { ...shape.columns, word: col.string('Text.') } }) as Table
    await expect(foundIn(plain, rows, stricter)).rejects.toThrow(/samples\.word is null in row 1/)
    expect((await foundIn(plain, [rows[0] as AnyRow], stricter))[0]).toMatchObject({ word: 'w' })
  })
})
