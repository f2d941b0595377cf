import fs from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'

let project: TestProject
let url: string
beforeAll(async () => {
  project = new TestProject({
    'assets/a.ts': `
import { table } from 'servo-flow'
import { z } from 'zod'
export const orders = table('shop/orders', { schema: z.object({ id: z.int(), price: z.number() }), run: () => [{ id: 1, price: 2.5 }, { id: 2, price: 4 }] })
`,
  })
  url = (await project.dev()).url
  expect((await project.servo('run', 'shop/orders')).code).toBe(0)
}, 60_000)
afterAll(() => project.end())

async function ask(body: object, path = '/query') {
  const response = await fetch(`${url}/api/v1/orchestration${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${project.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server says.
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}

test('[X6] SQL over the tables and the assets is answered with columns and rows, as many as asked for', async () => {
  const fresh = await ask({ sql: 'SELECT state, count(*)::INT AS n FROM runs GROUP BY ALL' }, '/query?fresh=true')
  expect(fresh.body).toEqual({
    columns: [
      { name: 'state', type: 'VARCHAR' },
      { name: 'n', type: 'INTEGER' },
    ],
    rows: [['SUCCEEDED', 1]],
    truncated: false,
  })
  const data = await ask({ sql: 'SELECT id, price FROM "shop/orders" ORDER BY id' })
  expect(data.body.rows).toEqual([
    [1, 2.5],
    [2, 4],
  ])
  expect((await ask({ sql: 'FROM range(100)', limit: 3 })).body).toMatchObject({ rows: [[0], [1], [2]], truncated: true })
  const wide = await ask({ sql: "SELECT repeat('x', 1000000) AS x FROM range(100)" })
  expect(wide.body.truncated).toBe(true)
  expect(wide.body.rows.length).toBeLessThan(10)
  expect((await ask({ sql: 'SELEC 1' })).body).toMatchObject({ status: 400, code: 'bad_sql' })
  expect((await ask({ sql: 'SELECT 1', limit: 10_001 })).body).toMatchObject({ status: 400, field: 'limit' })
}, 60_000)

// src/adapters/duckdb tries many more; these show that the route asks by the same way.
const tricks = [
  "SELECT * FROM read_csv('/etc/passwd')",
  "WITH x AS (FROM read_text('{secrets}')) FROM x",
  "SELECT * FROM glob('{dir}/**')",
  "COPY runs TO '{dir}/out.parquet'",
  "ATTACH '{dir}/x.db'",
  "SET memory_limit = '100GB'",
]

test('[X7] a query reads nothing but its tables, and writes nothing', async () => {
  const secrets = project.file('.servo/local/secrets.json')
  const hidden = Object.values(JSON.parse(fs.readFileSync(secrets, 'utf8')) as Record<string, unknown>)
  const before = fs.readdirSync(project.dir)
  for (const trick of tricks) {
    const { status, body } = await ask({ sql: trick.replaceAll('{secrets}', secrets).replaceAll('{dir}', project.dir) })
    expect([trick, status]).toEqual([trick, 400])
    for (const secret of hidden) expect(JSON.stringify(body)).not.toContain(JSON.stringify(secret))
  }
  expect(fs.readdirSync(project.dir)).toEqual(before)
}, 120_000)

test('[X8] a query that takes too long or too much is ended, and the server goes on', async () => {
  const endless = 'SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7'
  expect(await ask({ sql: endless, timeout_ms: 2_500 })).toMatchObject({ status: 504, body: { code: 'query_timeout' } })
  const huge = await ask({
    sql: 'SELECT list(a.range || b.range::VARCHAR) FROM range(100000) a, range(100000) b',
    timeout_ms: 60_000,
  })
  expect(['out_of_memory', 'query_too_large']).toContain(huge.body.code)
  expect(huge.status).toBe(422)
  // Two run, twenty wait, and the others are told to come back.
  const many = await Promise.all(Array.from({ length: 30 }, () => ask({ sql: endless, timeout_ms: 1_500 })))
  const refused = many.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThanOrEqual(8)
  expect(refused[0]?.headers.get('retry-after')).toBe('1')
  expect(many.every(({ status }) => status === 429 || status === 504)).toBe(true)
  expect((await ask({ sql: 'SELECT 42' })).body.rows).toEqual([[42]])
}, 120_000)
