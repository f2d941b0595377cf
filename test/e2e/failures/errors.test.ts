import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const ASSETS = `import { asset, sql, table } from 'servo-flow'
import { z } from 'zod'
import { fetchAll } from '../lib/fetch-all.ts'

const group = 'sick'
export const fetched = asset('fetched', { group, run: () => fetchAll('http://127.0.0.1:3/orders') })
export const several = asset('several', {
  group,
  run: () => Promise.any([Promise.reject(new RangeError('the first')), Promise.reject(new Error('the second'))]),
})
export const text = asset('text', { group, run: () => { throw 'just text' } })
export const facts = asset('facts', { group, run: () => { throw new Error('refused', { cause: { code: 42, shop: 'eu' } }) } })
export const nothing = asset('nothing', { group, run: () => Promise.reject() })
export const none = asset('none', { group, run: () => { throw null } })
export const dated = asset('dated', { group, run: () => ({ rows: [{}, { at: new Date() }] }) })
export const loop = asset('loop', {
  group,
  run() {
    const error = new Error('round \\u001b[31mand\\u0007 round')
    error.cause = error
    throw error
  },
})
export const huge = asset('huge', {
  group,
  run() {
    let error = new Error('at the bottom')
    for (let i = 0; i < 1_000; i++) error = new Error('x'.repeat(100_000), { cause: error })
    throw error
  },
})
const rows = table('rows', { group, schema: z.object({ id: z.number() }), run: () => [{ id: 1 }] })
export const queried = table('queried', {
  group,
  inputs: { rows },
  schema: z.object({ id: z.number() }),
  sql: () => sql\`select id,
    idd + 1
  from rows\`,
})
export { rows }
`
const FETCH_ALL = `export class NotFetched extends Error {
  code = 'E_NOT_FETCHED'
}
export async function fetchAll(url: string): Promise<string> {
  try {
    return await (await fetch(url)).text()
  } catch (cause) {
    throw new NotFetched('no orders', { cause })
  }
}
`

const HOSTILE = `import { asset } from 'servo-flow'
const no = () => { throw new Error('do not look') }
const json = { shop: 'eu', toJSON: no }
const getter = { shop: 'eu', get answer() { return no() } }
const proxy = new Proxy({}, { get: no, has: no, ownKeys: no, getPrototypeOf: no })
const { proxy: revoked, revoke } = Proxy.revocable({}, {})
revoke()
const all = { json, getter, proxy, revoked }
class Told extends Error {}
Object.defineProperty(Told, 'name', { get: no })
const several = new AggregateError([], 'several')
Object.defineProperty(several, 'errors', { get: () => revoked })
export const thrown = [
  ...Object.entries(all).map(([name, cause]) => asset('cause/' + name, { run: () => { throw new Told('refused', { cause }) } })),
  asset('thrown/proxy', { run: () => { throw proxy } }),
  asset('thrown/several', { run: () => { throw several } }),
  asset('thrown/checked', { checks: { odd: () => { throw proxy } }, run: () => 1 }),
]
export const told = asset('told', {
  checks: { odd: () => ({ ok: true, json }) },
  run({ log, metadata }) {
    log.info('read', { rows: 3, ...all })
    log.info('getter', getter)
    log.info('proxy', proxy)
    log.warn(Object.create(null))
    metadata({ rows: 3, ...all })
    metadata(getter)
    metadata(proxy)
    return 1
  },
})
`

test('[R5] what throws when it is read fails no attempt, and all that can be told of it is recorded', async () => {
  const project = projectOf({ 'assets/hostile.ts': HOSTILE })
  const told = await project.servo('run', 'told')
  expect(told.stdout).toMatch(/succeeded +.* told/)
  const fields = { json: { shop: 'eu' }, getter: { shop: 'eu', answer: '[unreadable: do not look]' } }
  const { run_id } = (await project.json('runs', 'list'))[0]
  const shown = await project.json('runs', 'show', run_id)
  expect(shown.attempts[0].output.metadata).toMatchObject({ rows: 3, shop: 'eu', ...fields, unreadable: 'do not look' })
  expect(shown.attempts[0].output.checks).toMatchObject([{ name: 'odd', ok: true, metadata: { json: { shop: 'eu' } } }])
  const logs = (await project.servo('runs', 'logs', run_id, '--json')).stdout.trim().split('\n')
  expect(logs.map((line) => JSON.parse(line)).filter(({ stream }) => stream === 'log')).toMatchObject([
    { text: 'read', fields: { rows: 3, ...fields } },
    { text: 'getter', fields: fields.getter },
    { text: 'proxy', fields: { unreadable: 'do not look' } },
    { text: '{}' },
  ])

  expect((await project.servo('run', 'key:"cause/*" or key:"thrown/*"')).code).toBe(1)
  const [newest] = await project.json('runs', 'list')
  const failed = await project.json('runs', 'show', newest.run_id)
  const errors = Object.fromEntries(
    failed.attempts.map(
      (attempt: {
        task_key: string
        error_message: string
        error_detail: { type?: string; causes?: { message: string }[] }
      }) => [attempt.task_key, [attempt.error_message, ...(attempt.error_detail.causes ?? []).map(({ message }) => message)]],
    ),
  )
  expect(errors).toEqual({
    'cause/json': ['refused', '{"shop":"eu"}'],
    'cause/getter': ['refused', '{"shop":"eu","answer":"[unreadable: do not look]"}'],
    'cause/proxy': ['refused', expect.stringContaining('do not look')],
    'cause/revoked': ['refused', expect.stringContaining('revoked')],
    'thrown/proxy': [expect.stringMatching(/do not look.* was thrown instead of an Error/)],
    'thrown/several': ['several'],
    'thrown/checked': [expect.stringContaining('checks of thrown/checked failed: odd'), expect.stringContaining('do not look')],
  })
})

test('[R5] a task that throws shows type, code, own frames and causes: as it happens, in the log, at the end, in show, as JSON', async () => {
  const project = projectOf({ 'assets/sick.ts': ASSETS, 'lib/fetch-all.ts': FETCH_ALL })
  const ran = await project.servo('run', 'group:sick')
  expect(ran.code, ran.stderr).toBe(1)
  const [, id] = /failed {2}(run_\w{8})/.exec(ran.stdout) as RegExpExecArray
  const { stdout: logs } = await project.servo('runs', 'logs', id as string)
  const { stdout: shown } = await project.servo('runs', 'show', id as string)
  const { attempts } = JSON.parse((await project.servo('runs', 'show', id as string, '--json')).stdout)

  const [live, recap] = ran.stdout.split(/^failed {2}run_/m)
  expect(live).toMatch(/failed +[\d.]+ m?s {2}fetched {2}no orders: fetch failed: connect ECONNREFUSED 127\.0\.0\.1:3/)
  for (const text of [live, recap, logs, shown]) {
    expect(text).toMatch(/NotFetched: no orders \(E_NOT_FETCHED\)/)
    expect(text).toMatch(/ at (async )?fetchAll \(lib\/fetch-all\.ts:8:11\)/)
    expect(text).toMatch(/caused by TypeError: fetch failed/)
    expect(text).toMatch(/ {2}caused by connect ECONNREFUSED 127\.0\.0\.1:3/)
    expect(text).toMatch(/AggregateError: All promises were rejected/)
    expect(text).toMatch(/one of them: RangeError: the first/)
    expect(text).toMatch(/one of them: the second/)
    expect(text).toContain(
      '"just text" was thrown instead of an Error. Write throw new Error(text), so that the report has a stack.',
    )
    expect(text).toContain('caused by {"code":42,"shop":"eu"}\n')
    expect(text).toContain('undefined was thrown instead of an Error.')
    expect(text).toContain('null was thrown instead of an Error.')
    expect(text).toContain('round \\u001b[31mand\\u0007 round')
    expect(text).toContain(
      'the value of dated cannot be stored as JSON: value.rows[1].at is a Date. Return value.rows[1].at.toISOString(), or give the asset an io.',
    )
    // DuckDB's error with the line of SQL and a caret below the column, and where the query is.
    expect(text).toMatch(/LINE 2: {5}idd \+ 1\n.* {10,}\^/)
    expect(text).toMatch(/declared at assets\/sick\.ts:\d+/)
    // Neither frames of Node nor of Servo.
    expect(text).not.toMatch(/ at .*(node:internal|src\/(sdk|worker)\/)/)
  }
  const of = (key: string) => attempts.find((attempt: { task_key: string }) => attempt.task_key === key)
  expect(of('fetched')).toMatchObject({
    error_message: 'no orders',
    error_detail: {
      type: 'NotFetched',
      code: 'E_NOT_FETCHED',
      stack: expect.stringMatching(/^ {4}at fetchAll \(lib\/fetch-all\.ts:8:11\)/),
      causes: [
        { depth: 1, as: 'cause', type: 'TypeError', message: 'fetch failed' },
        { depth: 2, as: 'cause', code: 'ECONNREFUSED' },
      ],
    },
  })
  expect(of('loop').error_detail.causes).toBeUndefined()
  // A chain of 100 MB is cut to what a person reads.
  expect(JSON.stringify(of('huge')).length).toBeLessThan(60_000)
  expect(Math.max(...live!.split('\n').map(({ length }) => length))).toBeLessThan(10_000)

  const quiet = await project.servo('run', 'fetched', '--quiet')
  expect(quiet.stdout).toMatch(/ at (async )?fetchAll \(lib\/fetch-all\.ts:8:11\)/)
  const json = await project.servo('run', 'fetched', '--json')
  expect(JSON.parse(json.stdout)).toMatchObject({
    state: 'FAILED',
    failures: [{ task_key: 'fetched', attempt: 1, error_message: 'no orders', error_detail: { code: 'E_NOT_FETCHED' } }],
  })
})

test('a module that throws while it is loaded shows the place, the stack and the causes, in servo run and servo dev', async () => {
  const project = projectOf({
    'assets/bad.ts': `import { connect } from '../lib/connect.ts'\nexport const it = connect()\n`,
    'lib/connect.ts': `export function connect() {\n  throw new TypeError('no connection', { cause: new Error('the port is closed') })\n}\n`,
  })
  const ran = await project.servo('run', '*')
  const expected = [
    /error: lib\/connect\.ts:2:9 {2}importing assets\/bad\.ts failed: no connection\n/,
    /\n {6}at connect \(lib\/connect\.ts:2:9\)\n {6}at assets\/bad\.ts:2:19\n {2}caused by the port is closed\n/,
  ]
  for (const each of expected) expect(ran.stderr).toMatch(each)
  expect(ran.code).toBe(2)
  const dev = await project.dev()
  for (const each of expected) await dev.says(each)
})
