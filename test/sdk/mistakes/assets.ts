// Options and bodies of assets. Each expectation is a mistake: see mistakes.test.ts.
import { asset, check, command, io, resource, source, sql, table } from 'servo-flow'
import { z } from 'zod'
import { forecast } from '../shop/assets/revenue.ts'

const plain = asset('plain', { run: () => ({ total: 1 }) })
const id = z.object({ id: z.string() })
const orders = table('orders', { schema: z.object({ id: z.string(), amount: z.number() }), run: () => [] })

// @ts-expect-error a misspelt option
asset('misspelt', { timout: '5m', run: () => 1 })

// @ts-expect-error an option of another tool
asset('dagster', { retries: 3, run: () => 1 })

// @ts-expect-error no body
asset('empty', { description: 'Nothing yet' })

// @ts-expect-error a retry count in quotes
asset('retried', { retry: '3', run: () => 1 })

// @ts-expect-error a misspelt retry option
asset('retried', { retry: { attempt: 3 }, run: () => 1 })

// @ts-expect-error a duration in words
asset('slow', { timeout: '5 minutes', run: () => 1 })

// @ts-expect-error a duration in milliseconds
asset('slow', { timeout: 300_000, run: () => 1 })

// @ts-expect-error an unknown overlap policy
asset('overlapping', { overlap: 'wait', run: () => 1 })

// @ts-expect-error a priority in words
asset('urgent', { priority: 'high', run: () => 1 })

// @ts-expect-error one owner, not a list
asset('owned', { owners: 'data@example.com', run: () => 1 })

// @ts-expect-error a freshness without its key
asset('fresh', { freshness: '24h', run: () => 1 })

// @ts-expect-error one dependency, not a list
asset('after', { deps: plain, run: () => 1 })

// @ts-expect-error a number as a key
asset(42, { run: () => 1 })

// @ts-expect-error a list of inputs, not names
asset('listed', { inputs: [plain], run: () => 1 })

// @ts-expect-error an input by its key
asset('by-key', { inputs: { plain: 'plain' }, run: () => 1 })

// @ts-expect-error an input that keeps its own data: a command
asset('x', { inputs: { forecast }, run: () => 1 })

// @ts-expect-error an input that keeps its own data: a body that returns nothing
asset('from-nothing', { inputs: { nothing: asset('nothing', { run: () => {} }) }, run: () => 1 })

// @ts-expect-error an input with a reserved name
asset('named', { inputs: { log: plain }, run: () => 1 })

// @ts-expect-error an undeclared input in the body
asset('undeclared', { inputs: { plain }, run: ({ plan }) => plan })

// @ts-expect-error a misspelt field of an input
asset('y', { inputs: { plain }, run: ({ plain }) => plain.totl })

// @ts-expect-error rows of a table without an await
asset('count', { inputs: { orders }, run: ({ orders }) => orders.rows().length })

// @ts-expect-error a table used as a list
asset('sum', { inputs: { orders }, run: ({ orders }) => orders.length })

// @ts-expect-error a misspelt column of an upstream table
asset('sum', { inputs: { orders }, run: async ({ orders }) => (await orders.rows()).map((order) => order.amont) })

// @ts-expect-error a table without a schema
table('untyped', { run: () => [{ id: '1' }] })

// @ts-expect-error a table with neither a body nor a query
table('neither', { schema: id })

// @ts-expect-error both a body and a query
table('both', { schema: id, run: () => [{ id: '1' }], sql: () => sql`select 1` })

// @ts-expect-error a column of another type
table('rows', { schema: id, run: () => [{ id: 1 }] })

// @ts-expect-error a missing column
table('rows', { schema: id, run: () => [{ name: 'x' }] })

// @ts-expect-error one row, not a list
table('row', { schema: id, run: () => ({ id: '1' }) })

// @ts-expect-error a query in quotes
table('text', { schema: id, sql: () => 'select 1 as id' })

// @ts-expect-error a list in a query
table('listed', { schema: id, sql: () => sql`select id from orders where id in ${['1', '2']}` })

asset('meta', {
  metadata: z.object({ rows: z.number() }),
  run({ metadata }) {
    // @ts-expect-error metadata of another type
    metadata({ rows: '12' })
    return 1
  },
})

asset('logged', {
  run({ log }) {
    // @ts-expect-error an object as a log message
    log.info({ rows: 3 })
    return 1
  },
})

table('col', {
  schema: id,
  // @ts-expect-error a check of an unknown column
  checks: { u: check.unique('idd') },
  run: () => [{ id: '1' }],
})

asset('checked', {
  run: () => ({ total: 1 }),
  // @ts-expect-error a check of an unknown field
  checks: { positive: (value) => value.sum > 0 },
})

asset('warned', {
  run: () => ({ total: 1 }),
  // @ts-expect-error a check that warns of an unknown field
  checks: { positive: check.warn((value) => value.totl > 0) },
})

asset('counted', {
  run: () => ({ total: 1 }),
  // @ts-expect-error a check of rows on a value
  checks: { 'not empty': check.rowCount({ min: 1 }) },
})

asset('silent', {
  run: () => ({ total: 1 }),
  // @ts-expect-error a check that returns nothing
  checks: { positive: (value) => void (value.total > 0) },
})

const text = io('text', { write: (value: string) => value, read: (bytes) => new TextDecoder().decode(bytes) })
// @ts-expect-error an IO for other values
asset('page', { run: () => 1, io: text })

const shop = resource('shop', { open: () => ({ orders: 1 }) })
// @ts-expect-error a misspelt field of a resource
asset('shopping', { resources: { shop }, run: ({ resources }) => resources.shop.order })

// @ts-expect-error a list of resources, not names
asset('shopping', { resources: [shop], run: () => 1 })

// @ts-expect-error an undeclared resource
asset('shopping', { run: ({ resources }) => resources.shop })

// @ts-expect-error a resource without open
resource('db', { config: z.object({ url: z.url() }) })

// @ts-expect-error a secret that is not a field of the config
resource('db', { config: z.object({ url: z.url() }), secrets: ['token'], open: ({ url }) => url })

// @ts-expect-error a command in one text
command('script', { run: 'python load.py' })

// @ts-expect-error a number in a command line
command('script', { run: ['python', 'load.py', 3] })

// @ts-expect-error the partition of a command without partitions
command('words', { run: ['echo', (partition) => partition.key] })

// @ts-expect-error a source without its files
source('files', { schema: id })

const scores = command('scores', { run: ['x'], output: 'rows.csv', schema: id })
table('from-scores', {
  schema: id,
  inputs: { scores },
  // @ts-expect-error a misspelt column of the rows that a program returned
  run: async ({ scores }) => (await scores.rows()).map((row) => ({ id: row.idd })),
})

// @ts-expect-error rows of a program without a schema
command('no-schema', { run: ['x'], output: 'rows.csv' })

// @ts-expect-error rows of a program without a file
command('no-file', { run: ['x'], schema: id })

// @ts-expect-error a file of rows in an unknown format
command('sheet', { run: ['x'], output: 'rows.xlsx', schema: id })

// @ts-expect-error a check of a misspelt column of a program's rows
command('checked', { run: ['x'], output: 'rows.csv', schema: id, checks: { u: check.unique('idd') } })

// @ts-expect-error checks of a program that returns no rows
command('own-data', { run: ['x'], checks: { u: () => true } })

// @ts-expect-error an input of a program that stores its own data
command('from-command', { run: ['x'], inputs: { forecast } })
