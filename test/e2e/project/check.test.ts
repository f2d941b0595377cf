import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const root = path.resolve(import.meta.dirname, '../../..')
/** The package by its name, as an installation has it. */
const TSCONFIG = JSON.stringify({
  extends: path.join(root, 'tsconfig.json'),
  compilerOptions: { paths: { 'servo-flow': [path.join(root, 'src/index.ts')] } },
  include: ['*.ts', 'assets'],
})

const GOOD = `import { daily, keys, previous, sql, table } from 'servo-flow'
import { z } from 'zod'
const day = daily({ start: '2025-01-01' })
const schema = z.object({ id: z.string(), amount: z.number(), note: z.string().optional() })
export const orders = table('orders', { partitions: day, schema, run: () => [] })
export const sums = table('sums', {
  partitions: day,
  schema: z.object({ day: z.string(), total: z.number() }),
  inputs: { orders, before: previous() },
  sql: ({ orders, before, partition }) => sql\`select \${partition.key}::varchar as day, sum(amount) + \${before ? 1 : 0} as total from \${orders} where id <> \${'x'}\`,
})
export const named = table('named', {
  partitions: keys(['eu']),
  schema: z.object({ n: z.number() }),
  inputs: { all: orders.all() },
  sql: () => sql\`select count(*) as n from "all"\`,
})
`

test('servo check says that a project is fine, and writes nothing', async () => {
  const project = projectOf({ 'assets/good.ts': GOOD, 'tsconfig.json': TSCONFIG, 'package.json': '{ "type": "module" }' })
  const { code, stdout, stderr } = await project.servo('check')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/^ok {2}checked 3 assets, 2 queries, 0 schedules, 0 sensors, types with TypeScript \d+\.\d+\.\d+\n$/)
  expect(fs.existsSync(project.file('.servo'))).toBe(false)
})

test('servo check lists every problem: types, graph, crons, queries, scripts, env files, variables', async () => {
  const project = projectOf({
    'tsconfig.json': TSCONFIG,
    'package.json': '{ "type": "module" }',
    'assets/good.ts': GOOD,
    'assets/bad-cron.ts': `import { schedule } from 'servo-flow'\nexport const late = schedule('late', { cron: '61 * * * *', select: [] })\n`,
    'assets/bad-types.ts': `console.log('loaded')\nexport const amount: number = 'twelve'\n`,
    'assets/bad-graph.ts': `import { asset } from 'servo-flow'
export const a = asset('a', { deps: ['b'], run: () => 1 })
export const b = asset('b', { deps: ['a'], run: () => 1 })
`,
    'assets/bad-sql.ts': `import { asset, sql, table } from 'servo-flow'
import { z } from 'zod'
import { orders } from './good.ts'
const schema = z.object({ total: z.number(), rest: z.number().nullable() })
export const wrong = table('wrong', {
  schema, inputs: { orders },
  sql: ({ orders }) => sql\`select sum(amuont) as total from \${orders}\`,
})
export const short = table('short', { schema, inputs: { orders }, sql: ({ orders }) => sql\`select 1 as total from \${orders}\` })
const limit = asset('limit', { run: () => 5 })
export const late = [limit, table('late', { schema, inputs: { limit }, sql: ({ limit }) => sql\`select \${limit.toFixed()} as total\` })]
`,
    'assets/bad-env.ts': `import { resource, asset, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
const api = resource('api', { config: z.object({ url: z.string(), port: z.coerce.number() }), open: (config) => config })
const quotes = z.string().superRefine((value, { addIssue }) => addIssue({ code: 'custom', message: 'cannot use ' + value }))
const db = resource('db', { config: z.object({ dsn: quotes }), secrets: ['dsn'], open: (config) => config })
export const c = asset('c', { resources: { api, db }, run: () => 1 })
export const hook = sensor.push('hook', { source: webhook({ path: 'shop', schema: z.object({}), secret: ['NEW_SIGN', 'OLD_SIGN'], verify: 'token' }), on: () => [] })
`,
    'assets/bad-script.ts': `import { command } from 'servo-flow'\nexport const d = command('d', { run: ['python3', 'ml/tain.py'] })\n`,
    '.env': 'SERVO_API_PORT=80\nSERVO_DB_DSN=canary-51c0\nunfinished line\n',
  })
  const { code, stdout, stderr } = await project.servo('check', '--json')
  // What modules print is not part of the answer.
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'loaded\n' })
  const { ok, problems, checked, unchecked } = JSON.parse(stdout)
  const found = problems.map(({ file, line, code, message }: Record<string, string>) => `${file}:${line} ${code} ${message}`)
  expect(found).toEqual([
    '.env:3 bad_env_file not NAME=value',
    expect.stringMatching(/^assets\/bad-cron\.ts:2 invalid_definition .*61/),
    expect.stringMatching(/^assets\/bad-env\.ts:3 missing_variable resource api needs SERVO_API_URL$/),
    expect.stringMatching(/^assets\/bad-env\.ts:5 bad_variable resource db .*: dsn: cannot use \[redacted SERVO_DB_DSN\]$/),
    expect.stringMatching(/^assets\/bad-env\.ts:7 missing_variable sensor hook needs NEW_SIGN or OLD_SIGN$/),
    expect.stringMatching(/^assets\/bad-graph\.ts:\d cycle /),
    'assets/bad-script.ts:2 missing_file d runs ml/tain.py, which does not exist',
    expect.stringMatching(/^assets\/bad-sql\.ts:5 bad_query wrong: Binder Error: Referenced column "amuont" not found/),
    expect.stringMatching(/^assets\/bad-sql\.ts:9 bad_query short: the query does not return rest, which the schema requires$/),
    expect.stringMatching(/^assets\/bad-types\.ts:2 type_error Type 'string' is not assignable to type 'number'\. \(TS2322\)$/),
  ])
  expect({ ok, checked }).toMatchObject({ ok: false, checked: { queries: 5, typescript: expect.stringMatching(/^\d/) } })
  expect(unchecked).toEqual([
    expect.stringMatching(/^the query of late: its query needs something that exists only when it runs/),
  ])

  const words = await project.servo('check')
  expect(words.stdout).toContain(
    "error: assets/bad-types.ts:2:14  Type 'string' is not assignable to type 'number'. (TS2322)\n",
  )
  expect(words.stdout).toMatch(
    /not checked: the query of late: .*\n10 problems {2}checked \d+ assets, 5 queries, 0 schedules, 1 sensor, /,
  )
})

test('servo check says what it cannot check: types without a compiler, and a project that ends its process', async () => {
  const project = projectOf({
    'assets/one.ts': `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`,
  })
  fs.unlinkSync(project.file('node_modules'))
  const { code, stdout } = await project.servo('check')
  expect(code).toBe(0)
  expect(stdout).toBe(
    'not checked: types: typescript is not installed (npm install --save-dev typescript @types/node)\nok  checked 1 asset, 0 queries, 0 schedules, 0 sensors\n',
  )
  project.write('assets/one.ts', 'process.exit(7)\n')
  const ended = await project.servo('check')
  expect(ended.code).toBe(1)
  expect(ended.stdout).toContain(
    'error: the process exited while it was loading the project (exit code 7)\nhint: A module calls process.exit()',
  )
})
