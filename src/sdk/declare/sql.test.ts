import { expect, test } from 'vitest'
import { compileQuery, sql } from './sql.ts'
import { createTable } from './values.ts'

const someTable = () => createTable({ files: [], columns: [], async *read() {}, async *query() {} })

test('a table in a query is called by the name of the input, if it is one, because errors quote the query', () => {
  const [orders, other] = [someTable(), someTable()]
  const { text, tables } = compileQuery(sql`select idd from ${orders} join ${other} using (id) where ${1} = 1`, { orders })
  expect(text).toBe('select idd from "orders" join "servo_table_1" using (id) where $1 = 1')
  expect(tables).toEqual({ servo_table_1: other })
})
