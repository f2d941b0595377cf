import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { memoryStore } from '../src/adapters/memory/object-store.ts'
import { fileRef } from '../src/engine/files/file-ref.ts'
import { type KeyTuple, keyOf, keyText, sortedByKey } from '../src/engine/fold/row-merge.ts'
import { decodeRows, encodeTableRows } from '../src/engine/parquet/parquet.ts'
import { sortedFileRef } from '../src/engine/sorted/index-footer.ts'
import { encodeSortedFile, mergeSortedFiles, SortedFileReader } from '../src/engine/sorted/sorted-file.ts'
import { sqlTypes } from '../src/engine/sql/tables.ts'
import { canonicalJson } from '../src/lib/json.ts'
import { type Column, type ColumnKind, type Columns, col } from '../src/model/column.ts'
import { type AnyRow, defineTable, type Table } from '../src/model/table.ts'

/*
 * Random tables and rows, written by us and read by us and by DuckDB. Look-ups exposed two silent wrong answers of the
 * libraries below: pruning by statistics that were cut inside a character, and statistics in UTF-16 order. So the keys
 * here are long, share their beginnings and mix characters below and beyond U+FFFF. SERVO_FUZZ_SEED repeats a run.
 */
const seed = Number(process.env['SERVO_FUZZ_SEED'] ?? Date.now() % 2 ** 31)
const scope = { tenant_id: 'acme', workspace_id: 'prod' }

let state = seed
function random(below: number): number {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) % below
}
const pick = <T>(items: readonly T[]): T => items[random(items.length)]!
const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

const scripts = ['aZ09-_./:', '\'"\\ %\n', 'éßæ', '日本語中文', '\uE000\uF8FF\uFEFF\uFFFD\uFFFF', '😀🚀𝒳\u{10FFFF}']
const beginnings = [
  '',
  'a',
  'sched:01JH8Q2V9K3M4N5P6R7S8T9V0W:',
  '日'.repeat(7),
  '日'.repeat(20),
  '\uE000'.repeat(6),
  '😀'.repeat(5),
  'x😀日',
]

function text(maxLength: number): string {
  const alphabet = [...pick(scripts), ...pick(scripts)]
  return times(random(maxLength + 1), () => pick(alphabet)).join('')
}

/** Keys as they really are: ids of one kind that differ at the end, now and then in the middle of a character. */
const keyMaker = (): (() => string) => {
  const start = pick(beginnings)
  return () => (random(8) === 0 ? pick(beginnings) : start) + text(10)
}

const anyValue: Record<ColumnKind, () => unknown> = {
  string: () => (random(3) === 0 ? pick(['queued', 'running', '']) : `${text(25)}${random(20) === 0 ? '\u0000' : ''}`),
  int: () => pick([0, -1, 2147483647, -2147483648, random(1000)]),
  long: () => pick([0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, random(2 ** 31) * 1000]),
  double: () => pick([0, -1.5, 1e300, 5e-324, random(1000) / 7]),
  boolean: () => random(2) === 0,
  timestamp: () => pick([0, -1, 1736935200123, 1736935200000 + random(1e9)]),
  strings: () => times(random(4), () => text(6)),
  map: () => Object.fromEntries(times(random(4), () => [`k${text(4)}`, text(6)])),
  json: () => pick([0, false, '', text(8), [], {}, [1, null, 'x'], { [`k${text(3)}`]: text(5), list: [{ deep: text(3) }] }]),
}

function randomTable(): Table {
  const columns: Record<string, Column> = {}
  const key = times(1 + random(3), (i) => `k${i}`)
  for (const [i, name] of key.entries()) columns[name] = i > 0 && random(2) === 0 ? col.int('Key.') : col.string('Key.')
  for (const [i, kind] of times(random(9), () => pick(Object.keys(anyValue) as ColumnKind[])).entries()) {
    columns[`c${i}`] = { kind, nullable: random(3) > 0, doc: 'Any.' }
  }
  return defineTable({
    name: 'fuzz',
    doc: 'For the tests.',
    key,
    storage: { kind: 'cold', merge: [] },
    columns: columns as Columns,
    // Then moments are written as differences.
    ...(random(2) === 0 && { digest: ['k0'] }),
  })
}

function randomRows(table: Table, count: number): AnyRow[] {
  const nextKey = keyMaker()
  const nullsIn = pick([0, 2, 10])
  const rows = times(count, (i) => {
    const row: AnyRow = {}
    for (const [name, { kind, nullable }] of Object.entries(table.columns as Columns)) {
      if (table.key.includes(name)) row[name] = kind === 'int' ? random(50) - 25 : nextKey()
      else row[name] = nullable && nullsIn > 0 && random(nullsIn) === 0 ? null : anyValue[kind]()
    }
    row['row_version'] = `v${i}`
    return row
  })
  const unique = new Map(rows.map((row) => [keyText(keyOf(table, row)), row]))
  return sortedByKey(table, unique.values())
}

let duckdb: DuckDBConnection
let folder: string
let fileCount = 0
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-fuzz-'))
  duckdb = await (await DuckDBInstance.create(':memory:', { threads: '1' })).connect()
})
afterAll(() => {
  duckdb.closeSync()
  fs.rmSync(folder, { recursive: true })
})

const query = async (sql: string): Promise<AnyRow[]> => (await duckdb.runAndReadAll(sql)).getRowObjectsJson() as AnyRow[]
const literal = (part: string | number): string => (typeof part === 'number' ? String(part) : `'${part.replaceAll("'", "''")}'`)
const where = (table: Table, key: KeyTuple): string => table.key.map((name, i) => `${name} = ${literal(key[i]!)}`).join(' and ')

/** DuckDB's client drops a byte order mark at the beginning of a text; DuckDB itself does not. */
const unmarked = (value: string): string => value.replace(/^\uFEFF/, '')

/** A row as DuckDB tells it in JSON. */
function asSql(table: Table, row: AnyRow): AnyRow {
  const shown: AnyRow = { ...scope }
  for (const [name, { kind }] of Object.entries(table.columns as Columns)) {
    shown[name] = row[name] === null ? null : (inJson[kind]?.(row[name]) ?? row[name])
  }
  return { ...shown, row_version: row['row_version'] }
}

const inJson: Partial<Record<ColumnKind, (value: AnyRow[string]) => unknown>> = {
  string: unmarked,
  long: String,
  timestamp: String,
  json: canonicalJson,
  strings: (items) => items.map(unmarked),
  map: (map) => sortedEntries(map).map(([key, value]) => ({ key: unmarked(key), value: unmarked(value) })),
}

const sortedEntries = (map: Record<string, string>): [string, string][] =>
  Object.keys(map)
    .sort()
    .map((key) => [key, map[key]!])

function columnsSql(table: Table): string {
  const shown = Object.entries(table.stored).map(([name, { kind }]) => {
    if (kind === 'timestamp') return `epoch_ms(${name}) as ${name}`
    return kind === 'json' ? `${name}::varchar as ${name}` : name
  })
  return shown.join(', ')
}

async function check(table: Table, rows: AnyRow[], lookUps: number): Promise<void> {
  const files = {
    snappy: encodeTableRows(table, rows, scope),
    zstd: encodeTableRows(table, rows, scope, { codec: 'zstd' }),
    sorted: encodeSortedFile(table, rows, scope),
  }
  let file = ''
  const picked = times(Math.min(lookUps, rows.length), () => pick(rows))
  for (const [kind, bytes] of Object.entries(files)) {
    expect(await decodeRows(table, bytes), kind).toEqual(rows)
    // Names that were never used: DuckDB keeps what it read of a file, and takes one rewritten within a second for the same.
    file = path.join(folder, `${++fileCount}.parquet`)
    fs.writeFileSync(file, bytes)
    const described = await query(`describe select * from '${file}'`)
    expect(described.map((column) => [column['column_name'], column['column_type']])).toEqual(Object.entries(sqlTypes(table)))
    for (const row of picked) {
      const found = await query(`select row_version from '${file}' where ${where(table, keyOf(table, row))}`)
      expect(found, `${kind}: DuckDB looks for ${keyText(keyOf(table, row))}`).toEqual([{ row_version: row['row_version'] }])
    }
  }
  for (const row of picked) {
    for (const name of table.key) {
      const excluded = await query(
        `select bloom_filter_excludes from parquet_bloom_probe('${file}', '${name}', ${literal(row[name])})`,
      )
      expect(
        excluded.some((group) => group['bloom_filter_excludes'] === false),
        'DuckDB asks our Bloom filters',
      ).toBe(true)
    }
  }
  if (rows.length <= 400) {
    const shown = await query(`select ${columnsSql(table)} from '${file}'`)
    expect(shown).toEqual(rows.map((row) => asSql(table, row)))
  }

  const store = memoryStore()
  const ref = sortedFileRef(fileRef('sorted', files.sorted, rows.length), files.sorted, 0)
  await store.create(ref.path, files.sorted)
  const reader = new SortedFileReader(store)
  const keys = rows.length > 2000 ? picked.map((row) => keyOf(table, row)) : rows.map((row) => keyOf(table, row))
  const found = await reader.lookup(table, ref, keys)
  expect(found.map((row) => row && keyOf(table, row))).toEqual(keys)
  const present = new Set(rows.map((row) => keyText(keyOf(table, row))))
  const absent = rows
    .slice(0, 50)
    .map((row) => keyOf(table, row).map((part) => (typeof part === 'number' ? part + 1 : `${part}\uFFFF`)))
  for (const [i, row] of (await reader.lookup(table, ref, absent)).entries())
    expect(row !== undefined).toBe(present.has(keyText(absent[i]!)))

  const halves = await Promise.all(
    [0, 1].map(async (half) => {
      const part = rows.filter((_, i) => i % 2 === half)
      const bytes = encodeSortedFile(table, part, scope)
      await store.create(`half-${half}`, bytes)
      return sortedFileRef(fileRef(`half-${half}`, bytes, part.length), bytes, 0)
    }),
  )
  expect(Buffer.compare((await mergeSortedFiles(store, table, scope, halves)).bytes, files.sorted)).toBe(0)
}

test(`random small files are read alike by us and by DuckDB, and every look-up finds its row (seed ${seed})`, async () => {
  for (let i = 0; i < 30; i++) {
    const table = randomTable()
    await check(table, randomRows(table, pick([0, 1, 2, 7, 20, 60, 200, 400])), 6)
  }
})

test(`random files of several row groups as well (seed ${seed})`, async () => {
  for (let i = 0; i < 2; i++) {
    const table = randomTable()
    await check(table, randomRows(table, 11_000), 15)
  }
})

test('keys on both sides of the gap between UTF-16 and UTF-8 order are found by DuckDB', async () => {
  const table = defineTable({
    name: 'fuzz',
    doc: 'For the tests.',
    key: ['k0'],
    storage: { kind: 'cold', merge: [] },
    columns: { k0: col.string('Key.') },
  })
  const keys = ['\uE000', '\uFFFD'.repeat(9), '😀', '😀'.repeat(9), '\u{10FFFF}', '日'.repeat(20), `${'日'.repeat(5)}a`]
  const rows = keys.map((k0, i) => ({ k0, row_version: `v${i}` }))
  for (const a of rows) for (const b of rows) await check(table, sortedByKey(table, a === b ? [a] : [a, b]), 2)
})
