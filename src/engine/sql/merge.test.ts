import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { query } from '../../adapters/duckdb/read-only-query.ts'
import { canonicalJson } from '../../lib/json.ts'
import { toIso } from '../../lib/time.ts'
import { type Column, type ColumnKind, type Columns, col } from '../../model/column.ts'
import { type AnyRow, defineTable, type MergeGroup, type PickedBy, type Table } from '../../model/table.ts'
import { sortedByKey } from '../fold/row-merge.ts'
import { encodeTableRows } from '../parquet/parquet.ts'
import { fileList, layerQuery, tableQuery } from './tables.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
let folder = ''
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-sql-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Text whose UTF-8 and UTF-16 orders differ, that JSON escapes, and that looks like the marks we sort with. */
const text = fc.string({
  unit: fc.constantFrom(
    ...[
      'a',
      'A',
      '"',
      '\\',
      '/',
      '\n',
      '\u0000',
      '\u0001',
      '\u001f',
      '\u007f',
      '\u2028',
      'é',
      '\uD7FF',
      '\uE000',
      '\uFFFD',
      '\uFFFF',
      '\u{10000}',
      '\u{1F600}',
      '\u{10FFFF}',
    ],
  ),
  maxLength: 3,
})

/**
 * Names in JSON without backslashes: V8 13.6 takes an escaped name for another one that it has just seen and that is written
 * with the same backslash, e.g. JSON.parse('{"":0,"\\\\":1}'), then JSON.parse('{"":0,"\\u0000":1}').
 */
const jsonKey = text.filter((name) => !name.includes('\\'))

const cell: Record<ColumnKind, fc.Arbitrary<unknown>> = {
  string: text,
  int: fc.constantFrom(-2147483648, -1, 0, 1, 2147483647),
  long: fc.constantFrom(Number.MIN_SAFE_INTEGER, -1, 0, 1, Number.MAX_SAFE_INTEGER),
  double: fc.constantFrom(-1e300, -1.5, 0, 5e-324, 2.5, 10),
  boolean: fc.boolean(),
  timestamp: fc.constantFrom(-1, 0, 1, 1_736_900_000_123),
  strings: fc.array(text, { maxLength: 2 }),
  map: fc.dictionary(text, text, { maxKeys: 2, noNullPrototype: true }),
  json: fc.oneof(
    text,
    fc.constantFrom(-1, 2, 10, 1e21, 0.5, true, false, [], {}),
    fc.array(text, { maxLength: 2 }),
    fc.dictionary(jsonKey, fc.integer(), { maxKeys: 2, noNullPrototype: true }),
  ),
}
const kinds = Object.keys(cell) as ColumnKind[]

/** A table with a column of every kind, some in groups, some alone, and the row version perhaps in a group. */
const anyTable: fc.Arbitrary<Table> = fc
  .record({
    owners: fc.array(fc.integer({ min: -1, max: 2 }), { minLength: kinds.length, maxLength: kinds.length }),
    picks: fc.array(fc.constantFrom('largest' as const, 'smallest' as const), { minLength: 3, maxLength: 3 }),
    picking: fc.array(fc.boolean(), { minLength: kinds.length, maxLength: kinds.length }),
    byVersion: fc.integer({ min: -1, max: 2 }),
    /** One time in the place of another. */
    isPaired: fc.boolean(),
  })
  .map(({ owners, picks, picking, byVersion, isPaired }) => {
    const columns: Record<string, Column> = { id: col.string('Id.'), part: col.int('Part.') }
    columns['ordered'] = col.optional(col.timestamp('Any.'))
    const time = `c${kinds.indexOf('timestamp')}`
    const pair = (name: string): PickedBy => (isPaired && name === time ? ['ordered', name] : name)
    kinds.forEach((kind, i) => {
      columns[`c${i}`] = col.optional({ kind, nullable: false, doc: 'Any.' })
    })
    const merge = picks.flatMap((pick, group): MergeGroup[] => {
      const mine = kinds.map((_, i) => i).filter((i) => owners[i] === group)
      const by = [...mine.filter((i) => picking[i]).map((i) => pair(`c${i}`)), ...(byVersion === group ? ['row_version'] : [])]
      return by.length === 0 ? [] : [{ pick, by, columns: mine.map((i) => `c${i}`) }]
    })
    return defineTable({
      name: 'things',
      doc: 'For the tests.',
      key: ['id', 'part'],
      storage: { kind: 'cold', merge },
      columns: columns as Columns,
    })
  })

const anyRow = fc.record({
  id: fc.constantFrom('x', 'y', '\uE000', '\u{1F600}'),
  part: fc.constantFrom(-1, 7),
  ordered: fc.oneof(fc.constant(null), cell.timestamp),
  ...Object.fromEntries(kinds.map((kind, i) => [`c${i}`, fc.oneof(fc.constant(null), cell[kind], cell[kind])])),
  row_version: text,
})
const anyFiles = fc.array(fc.array(anyRow, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 5 })

/** A row as a query prints it. */
const shown = (table: Table, row: AnyRow): AnyRow => ({
  ...scope,
  ...Object.fromEntries(
    Object.entries(table.columns as Columns).map(([name, { kind }]) => [
      name,
      kind === 'timestamp' && row[name] !== null ? toIso(row[name]) : row[name],
    ]),
  ),
  row_version: row['row_version'],
})

async function rowsOf(table: Table, files: readonly string[]): Promise<AnyRow[]> {
  const sql = tableQuery(table, { versions: `(${layerQuery(table, 'versions', fileList(files))})` })
  const result = await query('FROM things', {
    names: ['things'],
    open: async () => [{ name: 'things', sql, files }],
    spell: (file) => file,
  })
  const rows: AnyRow[] = []
  for await (const batch of result.rows()) {
    for (const row of batch) rows.push(Object.fromEntries(result.columns.map(({ name }, i) => [name, row[i]])))
  }
  return rows
}

test('[S2] SQL and JavaScript merge any rows by any rule to the same rows', { timeout: 120_000 }, async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(anyTable, anyFiles, async (table, contents) => {
      const files = contents.map((rows, i) => {
        const file = path.join(folder, `${count}-${i}.parquet`)
        // A file has each key once, whatever came to it.
        fs.writeFileSync(file, encodeTableRows(table, sortedByKey(table, rows), scope))
        return file
      })
      count += 1
      const expected = sortedByKey(table, contents.flat()).map((row) => shown(table, row))
      const actual = await rowsOf(table, files)
      expect(actual.map(canonicalJson).sort()).toEqual(expected.map(canonicalJson).sort())
    }),
    { numRuns: Number(process.env['SERVO_RUNS'] ?? 25) },
  )
})

test.each(kinds)('of any two values of kind %s, SQL and JavaScript call the same one the larger', async (kind) => {
  const columns = { id: col.string('Id.'), part: col.int('Part.'), c: col.optional({ kind, nullable: false, doc: 'Any.' }) }
  const table = defineTable({
    name: 'things',
    doc: 'For the tests.',
    key: ['id', 'part'],
    storage: { kind: 'cold', merge: [] },
    columns,
  })
  const values = fc.sample(cell[kind], { numRuns: 40, seed: 7 })
  const file = (name: string, pick: (i: number, j: number) => unknown): { path: string; rows: AnyRow[] } => {
    const rows = values.flatMap((_, i) => values.map((_, j) => ({ id: String(i), part: j, c: pick(i, j), row_version: '' })))
    const target = path.join(folder, `${kind}-${name}.parquet`)
    fs.writeFileSync(target, encodeTableRows(table, rows, scope))
    return { path: target, rows }
  }
  const [left, right] = [file('left', (i) => values[i]), file('right', (_, j) => values[j])]
  const expected = sortedByKey(table, [...left.rows, ...right.rows]).map((row) => shown(table, row))
  const actual = await rowsOf(table, [left.path, right.path])
  expect(actual.map(canonicalJson).sort()).toEqual(expected.map(canonicalJson).sort())
})
