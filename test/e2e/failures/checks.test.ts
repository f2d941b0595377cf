import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const ASSETS = `import { asset, check, command, table } from 'servo-flow'
import { z } from 'zod'

const schema = z.object({ id: z.number(), region: z.string().nullable() })
const rows = [7, 7, 9, 9, 12, 12, 13].map((id) => ({ id, region: id === 13 ? null : 'eu' }))
export const orders = table('orders', {
  schema,
  run: () => rows,
  checks: {
    'one row per id': check.unique('id'),
    'has rows': check.rowCount({ min: 1 }),
    'has a region': check.warn(check.notNull('region')),
  },
})
export const warned = asset('warned', {
  run({ log }) {
    log.info('read', { rows: 300, from: 'the shop', parts: [1, 2], none: undefined, error: new TypeError('no', { cause: new Error('why') }), sizes: new Map([['a', 1]]) })
    return 3
  },
  checks: {
    'is even': check.warn((n) => ({ ok: n % 2 === 0, message: 'it is odd', found: n })),
    'is small': (n) => n < 10,
    'is odd': (n) => n % 2 === 1,
    'has a return': check.warn((n) => { n > 1 }),
  },
})
`

test('[R6] each check that does not pass shows what was found: as it happens, at the end, in runs show, assets show and as JSON', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const failed = await project.servo('run', 'orders')
  expect(failed.code, failed.stderr).toBe(1)
  const [, id = ''] = /failed with 1 warning {2}(run_\w{8})/.exec(failed.stdout) ?? []
  const { stdout: shown } = await project.servo('runs', 'show', id)
  const [live, recap] = failed.stdout.split(/^failed with 1 warning {2}run_/m)
  for (const text of [live, recap, shown]) {
    expect(text).toMatch(/check one row per id failed: 3 duplicate values of id: 7, 9, 12\n/)
    expect(text).toMatch(/check has a region warned: 1 row without region\n/)
    expect(text).toContain('checks of orders failed: one row per id (3 duplicate values of id: 7, 9, 12)')
  }
  for (const text of [recap, shown]) expect(text).toMatch(/\n {2}checks: 1 passed, 1 warned, 1 failed\n/)

  const warned = await project.servo('run', 'warned')
  expect(warned.stdout).toMatch(
    /succeeded +[\d.]+ m?s {2}warned\n {4}check is even warned: it is odd found=3\n {4}check has a return warned: it returned undefined; a check returns true or false/,
  )
  expect(warned.stdout).toMatch(/^succeeded with 2 warnings {2}run_\w{8} {2}1 task in /m)
  expect(warned.stdout).toMatch(/ {2}checks: 2 passed, 2 warned\n {4}warned {2}check is even warned: it is odd found=3\n/)
  expect(warned.code).toBe(0)

  // Fields of the log stand behind its text, and are JSON in JSON.
  const fields =
    /warned │ read {2}rows=300 from="the shop" parts=\[1,2\] none=null error="TypeError: no: Error: why" sizes=\{"a":1\}\n/
  expect(warned.stdout).toMatch(fields)
  const [, warnedId = ''] = /(run_\w{8})/.exec(warned.stdout) ?? []
  expect((await project.servo('runs', 'logs', warnedId)).stdout).toMatch(fields)
  const [entry] = (await project.servo('runs', 'logs', warnedId, '--json')).stdout.split('\n')
  expect(JSON.parse(entry ?? '')).toMatchObject({ text: 'read', fields: { rows: 300, from: 'the shop', parts: [1, 2] } })

  const json = JSON.parse((await project.servo('run', 'orders', '--json')).stdout)
  expect(json).toMatchObject({
    state: 'FAILED',
    warnings: 1,
    checks: [
      { task_key: 'orders', name: 'one row per id', outcome: 'failed', metadata: { repeated: 3, examples: ['7', '9', '12'] } },
      { name: 'has rows', outcome: 'passed', metadata: { rows: 7 } },
      { name: 'has a region', outcome: 'warned', severity: 'warn', metadata: { missing: 1 } },
    ],
  })
  const asset = await project.servo('assets', 'show', 'orders')
  expect(asset.stdout).toMatch(
    /\nchecks, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d by run_\w{8}\n {2}check one row per id failed: .*\n {2}check has rows passed: rows=7\n {2}check has a region warned: /,
  )
  expect(await project.json('assets', 'show', 'warned')).toMatchObject({
    last_checks: { partition_key: null, checks: [{ name: 'is even', ok: false }, { ok: true }, { ok: true }, { ok: false }] },
  })

  // A body that fails leaves the last results as they were.
  project.write('assets/all.ts', ASSETS.replace('return 3', "throw new Error('no')"))
  await project.servo('run', 'warned')
  expect((await project.servo('assets', 'show', 'warned')).stdout).toMatch(/\n {2}check is even warned: it is odd found=3\n/)
})

test('[R6] a check that throws shows where it did, also if it only warns', async () => {
  const throwing = `import { asset, check } from 'servo-flow'
const look = (n) => { throw new RangeError('no column ' + n) }
export const warned = asset('warned', {
  run: () => 3,
  checks: { strict: check.warn((n) => look(n)) },
})
`
  const project = projectOf({ 'assets/all.ts': throwing })
  const ran = await project.servo('run', 'warned')
  expect(ran.code, ran.stderr).toBe(0)
  const [, id = ''] = /(run_\w{8})/.exec(ran.stdout) ?? []
  const { stdout: logs } = await project.servo('runs', 'logs', id)
  for (const text of [ran.stdout, logs]) {
    expect(text).toContain('check strict threw')
    expect(text).toContain('RangeError: no column 3')
    expect(text).toMatch(/at .*assets\/all\.ts:2:\d+/)
  }
  expect(ran.stdout).toMatch(/check strict warned: it threw: no column 3/)
})
