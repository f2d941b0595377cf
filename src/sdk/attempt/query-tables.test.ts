import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { columnsOf, inferColumns } from '../columns.ts'
import { type Query, type SqlValue, sql } from '../declare/sql.ts'
import { createTable, type DataRow, type DataTable } from '../declare/values.ts'
import { MemoryValues } from './memory-values.ts'
import { queryTables } from './query-tables.ts'

async function tableOf(rows: DataRow[], schema?: z.ZodType): Promise<DataTable<DataRow>> {
  const store = new MemoryValues()
  const { path } = await store.writeRows(rows)
  const values = [{ partition_key: '', materialization_id: 'm', path }]
  return store.openTable({ asset_key: 't', io: 'parquet', many: false, values }, schema && columnsOf(schema))
}

const ask = (query: Query, tables = {}) => Array.fromAsync(queryTables(query, tables))

describe('the columns of a schema', () => {
  test('are those of its rows, with how each is kept and what stands for no value', () => {
    const schema = z.object({
      text: z.string(),
      number: z.number(),
      whole: z.int(),
      big: z.bigint(),
      yes: z.boolean(),
      at: z.date(),
      kind: z.enum(['a', 'b']),
      one: z.literal(1),
      list: z.array(z.string()),
      maybe: z.string().optional(),
      nullable: z.number().nullable(),
      nullish: z.date().nullish(),
      filled: z.string().default('x'),
      mixed: z.union([z.string(), z.number()]),
      made: z.string().transform((text) => text.length),
      piped: z.string().transform(Number).pipe(z.number()),
    })
    expect(columnsOf(schema)?.map(({ name, type, empty }) => `${name} ${type} ${empty}`)).toEqual([
      'text text never',
      'number double never',
      'whole integer never',
      'big bigint never',
      'yes boolean never',
      'at timestamp never',
      'kind text never',
      'one double never',
      'list json never',
      'maybe text undefined',
      'nullable double null',
      'nullish timestamp null',
      'filled text never',
      'mixed json never',
      'made json never',
      'piped double never',
    ])
  })

  test('are not told by a schema of another kind', () => {
    expect(columnsOf(z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]))).toBeUndefined()
    const foreign = { '~standard': { version: 1, vendor: 'other', validate: (value: unknown) => ({ value }) } } as const
    expect(columnsOf(foreign)).toBeUndefined()
  })

  test('are else those that the rows have', () => {
    const rows = [
      { a: 1, b: null },
      { a: 2, b: 'x', c: true },
      { b: 'y', d: 1n },
    ]
    expect(inferColumns(rows).map(({ name, type, empty }) => `${name} ${type} ${empty}`)).toEqual([
      'a double undefined',
      'b text null',
      'c boolean undefined',
      'd bigint undefined',
    ])
    expect(inferColumns([{ a: 1 }, { a: 'x' }])[0]?.type).toBe('json')
  })
})

describe('a query', () => {
  const schema = z.object({
    id: z.string(),
    amount: z.number(),
    count: z.int(),
    at: z.date(),
    tags: z.array(z.string()),
    note: z.string().optional(),
  })
  const rows = [
    { id: "o'1", amount: 1.5, count: 3, at: new Date('2025-01-15T10:00:00.123Z'), tags: ['x', 'y'] },
    { id: '2', amount: -2, count: 4, at: new Date('1969-12-31T23:59:59.999Z'), tags: [], note: 'n' },
  ]

  test('gives rows back as they were', async () => {
    const table = await tableOf(rows, schema)
    expect(await Array.fromAsync(queryTables(sql`select * from ${table}`, {}, columnsOf(schema)))).toEqual(rows)
  })

  test('takes values as parameters, whatever is in them', async () => {
    const table = await tableOf(rows, schema)
    expect(await table.sql`select id from this where id = ${"o'1"} and "at" > ${new Date(0)} and amount > ${0}`).toEqual([
      { id: "o'1" },
    ])
    const part = sql`where amount < ${0}`
    expect(await ask(sql`select count(*) as n from ${table} ${part}`)).toEqual([{ n: 1 }])
  })

  test('may join tables, named or put in, and one table twice', async () => {
    const [left, right] = [await tableOf([{ id: 1, a: 'x' }]), await tableOf([{ id: 1, b: 'y' }])]
    expect(await ask(sql`select a, b from ${left} join other using (id)`, { other: right })).toEqual([{ a: 'x', b: 'y' }])
    expect(await left.sql`select count(*) as n from this t join ${left} u on t.id = u.id`).toEqual([{ n: 1 }])
  })

  test('gives numbers as numbers unless they are too large, and days as texts', async () => {
    const query = sql`select 1::bigint as n, 9007199254740993 as large, 1.25::decimal(9,2) as price, sum(2)::hugeint as total,
      date '2025-01-15' as day, [1, 2] as list, {'a': 1} as struct, map {'k': 1} as map, '{"a":[1]}'::json as json, 'x'::blob as bytes`
    expect(await ask(query)).toEqual([
      {
        n: 1,
        large: 9007199254740993n,
        price: 1.25,
        total: 2,
        day: '2025-01-15',
        list: [1, 2],
        struct: { a: 1 },
        map: { k: 1 },
        json: { a: [1] },
        bytes: new Uint8Array([120]),
      },
    ])
  })

  test('reads tables that are files, and partitions from before a column was added', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-files-'))
    onTestFinished(() => fs.rmSync(folder, { recursive: true, force: true }))
    const files = [path.join(folder, "it's old.parquet"), path.join(folder, 'new.parquet')]
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    await connection.run(`COPY (SELECT 1 AS id) TO '${files[0]?.replace("'", "''")}'`)
    await connection.run(`COPY (SELECT 2 AS id, '{"a":1}'::JSON AS extra) TO '${files[1]}'`)
    connection.closeSync()
    const unread = () => {
      throw new Error('rows of files are read by the query')
    }
    const table = createTable({ files, columns: undefined, read: unread, query: (query, tables) => queryTables(query, tables) })
    expect(await table.sql`select id, extra from this order by id`).toEqual([
      { id: 1, extra: null },
      { id: 2, extra: { a: 1 } },
    ])
  })

  test.each([
    ['selekt', sql`selekt 1`],
    ['an unknown table', sql`select * from nowhere`],
    ['a cast that fails', sql`select 'x'::int`],
  ])('that is wrong is a mistake of its author: %s', async (_, query) => {
    await expect(ask(query)).rejects.toMatchObject({ kind: 'invalid', code: 'bad_query' })
  })

  test.each([[[1, 2]], [{}], [undefined], [() => 1]])('takes no %j', async (value) => {
    await expect(ask(sql`select ${value as SqlValue}`)).rejects.toMatchObject({ code: 'bad_sql_value' })
  })
})
