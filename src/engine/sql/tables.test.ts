import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { query } from '../../adapters/duckdb/read-only-query.ts'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import { sortedByKey } from '../fold/row-merge.ts'
import { encodeTableRows } from '../parquet/parquet.ts'
import { removedKeysOf } from '../publish/removed-keys.ts'
import { escapePattern, fileList, layerQuery, type Relations, type SqlLayer, tableQuery } from './tables.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
let folder = ''
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-sql-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

const things = defineTable({
  name: 'things',
  doc: 'For the tests.',
  key: ['id', 'part'],
  storage: { kind: 'hot', sealedWith: 'things' },
  columns: { id: col.string('Id.'), part: col.int('Part.'), note: col.optional(col.string('Note.')) },
})

type Files = Partial<Record<SqlLayer, string[]>>

async function ask(table: Table, files: Files, sql = 'FROM things ORDER BY ALL'): Promise<AnyRow[]> {
  const relations: Relations = {}
  for (const [layer, paths] of Object.entries(files) as [SqlLayer, string[]][]) {
    if (paths.length > 0) relations[layer] = `(${layerQuery(table, layer, fileList(paths))})`
  }
  const shown = { name: 'things', sql: tableQuery(table, relations), files: Object.values(files).flat() }
  const result = await query(sql, { names: ['things'], open: async () => [shown], spell: escapePattern })
  const rows: AnyRow[] = []
  for await (const batch of result.rows()) {
    for (const row of batch) rows.push(Object.fromEntries(result.columns.map(({ name }, i) => [name, row[i]])))
  }
  return rows
}

function write(dir: string, layer: string, publish: number, table: Table, rows: AnyRow[]): string {
  const target = path.join(dir, layer, `${String(publish).padStart(12, '0')}-1.parquet`)
  fs.mkdirSync(path.dirname(target), { recursive: true })
  fs.writeFileSync(target, encodeTableRows(table, sortedByKey(table, rows), scope))
  return target
}

const key = fc.record({ id: fc.constantFrom('a', 'b', "'; DROP VIEW things; --"), part: fc.constantFrom(0, 1) })
const keyText = (row: AnyRow): string => `${row['id']} ${row['part']}`
const uniqueKeys = fc.uniqueArray(key, { selector: keyText, maxLength: 6 })
const delta = fc.record({ changed: uniqueKeys, removed: uniqueKeys })

test('a key is as the newest delta says: changed or removed; if none mentions it, as the base says', async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(uniqueKeys, fc.array(delta, { maxLength: 4 }), async (base, deltas) => {
      const dir = path.join(folder, `layers-${count++}`)
      const files: Files = { base: [], l0: [], removed: [], history: [] }
      const expected = new Map<string, AnyRow>()
      const rows = (keys: AnyRow[], note: string): AnyRow[] => keys.map((it) => ({ ...it, note, row_version: 'v' }))
      if (base.length > 0) files.base?.push(write(dir, 'base', 7, things, rows(base, 'base')))
      for (const row of rows(base, 'base')) expected.set(keyText(row), row)
      deltas.forEach(({ changed, removed }, i) => {
        // Numbers of two digits would sort wrong if they were not padded, and 10 follows 9.
        const publish = 8 + i
        if (changed.length > 0) files.l0?.push(write(dir, 'l0', publish, things, rows(changed, `delta ${i}`)))
        if (removed.length > 0) files.removed?.push(write(dir, 'removed', publish, removedKeysOf(things), rows(removed, '')))
        for (const row of rows(changed, `delta ${i}`)) expected.set(keyText(row), row)
        for (const row of removed) expected.delete(keyText(row))
      })
      const sealed = { id: 'sealed', part: 0, note: 'history', row_version: 'v' }
      files.history?.push(write(dir, 'history', 3, things, [sealed]))
      const actual = (await ask(things, files)).map(({ tenant_id, workspace_id, ...row }) => row)
      const sorted = (all: AnyRow[]): AnyRow[] => all.sort((a, b) => (keyText(a) < keyText(b) ? -1 : 1))
      expect(sorted(actual)).toEqual(sorted([...expected.values(), sealed]))
    }),
    { numRuns: 40 },
  )
})

test('a column that some or all files do not have yet is null', async () => {
  const { name, doc, key, storage, columns } = things
  const before = defineTable({
    name,
    doc,
    key: key as ['id', 'part'],
    storage,
    columns: { id: columns.id, part: columns.part },
  })
  const dir = path.join(folder, 'older')
  const row = { id: 'old', part: 1, row_version: 'v' }
  const older = write(dir, 'base', 1, before, [row])
  expect(await ask(things, { base: [older] })).toEqual([{ ...scope, ...row, note: null }])
  const newer = write(dir, 'l0', 2, things, [{ id: 'new', part: 1, note: 'here', row_version: 'v' }])
  expect(await ask(things, { base: [older], l0: [newer] }, 'SELECT id, note FROM things ORDER BY id')).toEqual([
    { id: 'new', note: 'here' },
    { id: 'old', note: null },
  ])
  // Read the other way round, by a version that does not know the column.
  expect(await ask(before, { base: [newer] }, 'FROM things')).toEqual([{ ...scope, id: 'new', part: 1, row_version: 'v' }])
})

test('a table without files is empty', async () => {
  expect(await ask(things, {})).toEqual([])
})

const names = [
  'it’s',
  "it's",
  'a*b',
  'a?b',
  '[ab]',
  'a[!b]',
  '**',
  '"quoted"',
  'tenant=evil',
  '{a,b}',
  'back\\slash',
  'new\nline',
  '$HOME',
  '%41',
]
test.each(names)('the folder may be called %j', async (name) => {
  const dir = path.join(folder, 'names')
  for (const other of ['a', 'ab', 'aab', 'b'])
    write(path.join(dir, other), 'base', 1, things, [{ id: 'other', part: 0, row_version: 'v' }])
  const row = { id: 'mine', part: 0, note: name, row_version: 'v' }
  expect(await ask(things, { base: [write(path.join(dir, name), 'base', 1, things, [row])] })).toEqual([{ ...scope, ...row }])
})
