import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { orchestration } from '../../src/domain/index.ts'
import { allTables } from '../../src/engine/fold/state.ts'
import type { Table } from '../../src/model/table.ts'
import { compareSchemas, schemaOf, type TableSchema } from './schema.ts'

const folder = path.join(import.meta.dirname, 'schemas')
/** Hot and cold tables lie in folders of their own. */
const fileOf = ({ name, storage }: Table): string => path.join(folder, storage.kind, `${name}.json`)
const tables = allTables(orchestration)
const WAY_OUT =
  'Stored files and queries of users rely on this. Add a nullable column instead, or write a migration and say so in the changelog.'

if (process.env['UPDATE_GOLDEN']) {
  for (const table of tables) {
    fs.mkdirSync(path.dirname(fileOf(table)), { recursive: true })
    fs.writeFileSync(fileOf(table), `${JSON.stringify(schemaOf(table), null, 2)}\n`)
  }
}

describe('[S11] tables keep what readers rely on', () => {
  const goldens = fs
    .readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.json'))
    .map((file) => JSON.parse(fs.readFileSync(path.join(folder, file), 'utf8')) as TableSchema)

  test.each(goldens)('$table', (golden) => {
    const table = tables.find(({ name }) => name === golden.table)
    expect(table, `the table ${golden.table} is gone. ${WAY_OUT}`).toBeDefined()
    const current = schemaOf(table!)
    expect(compareSchemas(golden, current), WAY_OUT).toEqual([])
    const added = Object.keys(current.columns).filter((name) => golden.columns[name] === undefined)
    if (added.length > 0)
      console.warn(
        `${golden.table} has new columns: ${added.join(', ')}. Record them: UPDATE_GOLDEN=1 npx vitest run test/golden, then npm run fix`,
      )
  })

  test('every table has a golden file', () => {
    const missing = tables.filter((table) => !fs.existsSync(fileOf(table))).map(({ name }) => name)
    expect(missing, 'Record them: UPDATE_GOLDEN=1 npx vitest run test/golden, then npm run fix').toEqual([])
  })
})

describe('[S11] of two versions of a table', () => {
  const golden: TableSchema = {
    table: 'things',
    key: ['id'],
    storage: { kind: 'hot' },
    columns: {
      id: { kind: 'string', nullable: false },
      state: { kind: 'string', nullable: false, values: ['ON', 'OFF'] },
      note: { kind: 'string', nullable: true },
    },
  }
  const changed = (columns: TableSchema['columns'], rest: Partial<TableSchema> = {}): TableSchema => ({
    ...golden,
    ...rest,
    columns,
  })
  const { id, state, note } = golden.columns as Record<string, TableSchema['columns'][string]>

  test('a new column that may be null breaks nothing', () => {
    expect(compareSchemas(golden, changed({ ...golden.columns, at: { kind: 'timestamp', nullable: true } }))).toEqual([])
  })

  test('a new column may join a merge group, but one that was there may not leave it', () => {
    const storage = (columns: string[]): TableSchema['storage'] => ({
      kind: 'cold',
      merge: [{ pick: 'largest', by: ['note'], columns }],
    })
    const before: TableSchema = { ...golden, storage: storage(['note', 'state']) }
    const at = { kind: 'timestamp', nullable: true }
    expect(compareSchemas(before, changed({ ...golden.columns, at }, { storage: storage(['note', 'state', 'at']) }))).toEqual(
      [],
    )
    expect(compareSchemas(before, changed(golden.columns, { storage: storage(['note']) }))).toEqual([
      'things: rows are stored or merged by another rule',
    ])
  })

  test('a new value of a state breaks nothing', () => {
    expect(
      compareSchemas(golden, changed({ ...golden.columns, state: { ...state!, values: ['ON', 'OFF', 'BROKEN'] } })),
    ).toEqual([])
  })

  test('a new column that must not be null breaks older files', () => {
    expect(compareSchemas(golden, changed({ ...golden.columns, at: { kind: 'timestamp', nullable: false } }))).toEqual([
      'things.at is new and must not be null, but older files do not have it',
    ])
  })

  test('a column that is gone breaks queries', () => {
    expect(compareSchemas(golden, changed({ id: id!, state: state! }))).toEqual(['things.note is gone'])
  })

  test('a renamed column is one that is gone, whatever came in its place', () => {
    expect(compareSchemas(golden, changed({ id: id!, state: state!, remark: note! }))).toEqual(['things.note is gone'])
  })

  test('a column of another kind breaks both', () => {
    expect(compareSchemas(golden, changed({ ...golden.columns, note: { kind: 'json', nullable: true } }))).toEqual([
      'things.note was string and is json',
    ])
  })

  test('a column may neither become required nor become nullable', () => {
    expect(compareSchemas(golden, changed({ ...golden.columns, note: { kind: 'string', nullable: false } }))).toEqual([
      'things.note may be null in older files, but must not be any more',
    ])
    expect(compareSchemas(golden, changed({ ...golden.columns, state: { ...state!, nullable: true } }))).toEqual([
      'things.state was never null, and readers rely on it',
    ])
  })

  test('a state that is no more, another key and another rule are told', () => {
    expect(compareSchemas(golden, changed({ ...golden.columns, state: { ...state!, values: ['ON'] } }))).toEqual([
      'things.state may be OFF in older files, which is no value of it any more',
    ])
    expect(compareSchemas(golden, changed(golden.columns, { key: ['id', 'note'] }))).toEqual([
      'things: the key was (id) and is (id, note)',
    ])
    expect(compareSchemas(golden, changed(golden.columns, { storage: { kind: 'cold', merge: [] } }))).toEqual([
      'things: rows were hot and are cold',
    ])
    expect(compareSchemas(golden, changed(golden.columns, { storage: { kind: 'hot', sealedWith: 'runs' } }))).toEqual([
      'things: rows are stored or merged by another rule',
    ])
  })
})
