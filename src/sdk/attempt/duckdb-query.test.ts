import { expect, test } from 'vitest'
import { compileQuery, sql } from '../declare/sql.ts'
import { createTable } from '../declare/values.ts'
import { explainQueryError } from './duckdb-query.ts'

const someTable = () => createTable({ files: [], columns: [], async *read() {}, async *query() {} })

test('a query that reads a file is told that it may read only its inputs, and what to do instead', () => {
  const refused = new Error(
    'Permission Error: Cannot access file "here.csv" - file system operations are disabled by configuration',
  )
  expect(explainQueryError(refused, ['orders'])).toMatchObject({
    code: 'bad_query',
    message: expect.stringMatching(/^a query can read only its inputs: Permission Error/),
    hint: expect.stringContaining('Read the file in `run`'),
  })
  expect(explainQueryError(new Error('Binder Error: no such column'), ['orders'])).toMatchObject({
    hint: 'Change the query. It can name orders.',
  })
})

test('a table in a query is called by the name of the input, if it is one, because errors quote the query', () => {
  const [orders, other] = [someTable(), someTable()]
  const { text, tables } = compileQuery(sql`select idd from ${orders} join ${other} using (id) where ${1} = 1`, { orders })
  expect(text).toBe('select idd from "orders" join "servo_table_1" using (id) where $1 = 1')
  expect(tables).toEqual({ servo_table_1: other })
})
