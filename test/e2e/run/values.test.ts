import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'
import { until } from '../support/until.ts'

const ASSETS = `import { asset, command, keys } from 'servo-flow'

export const amount = asset('amount', { run: () => ({ amount: 100, of: 'ü' }) })
export const none = asset('none', { run: () => null })
export const long = asset('long', { run: () => 'x'.repeat(5_000) })
export const token = asset('token', { run: () => [process.env['SHOP_TOKEN']] })
export const refused = asset('refused', { checks: { never: () => false }, run: () => 'not this' })
export const parted = asset('parted', {
  partitions: keys(['a', 'b']),
  run: ({ partition }) => (partition.key === 'a' ? 'short' : 'y'.repeat(5_000)),
})
export const total = asset('total', {
  inputs: { amount, none, long, parted: parted.all() },
  run: ({ amount, none, long, parted }) => [amount.amount, none, long.length, parted.get('a'), parted.get('b')?.length],
})
export const program = command('program', {
  inputs: { amount, long },
  run: ['sh', '-c', 'test "$(cat "$SERVO_INPUT_AMOUNT")" = \\'{"amount":100,"of":"ü"}\\' && test "$(wc -c < "$SERVO_INPUT_LONG")" = 5002'],
})
`

const SECRET = 'hush-hush-hush'
const project = new TestProject({ 'assets/shop.ts': ASSETS })
const workspace = project.file('.servo/tenant=default/workspace=default')

beforeAll(async () => {
  await project.devIn({ SHOP_TOKEN: SECRET })
  await ran('amount', 'none', 'long', 'token', 'refused')
  await ran('parted')
  // In runs of their own: what they read was made before.
  await ran('total', 'program')
  await published(`select * from stored_values where asset_key = 'total'`)
})
afterAll(() => project.end())

/** Waits until the published tables have such rows. */
const published = (sql: string): Promise<void> => until(async () => (await project.query(sql)).length > 0, sql)

/** Runs these assets, and says how their tasks ended. */
async function ran(...selection: string[]): Promise<Record<string, unknown>> {
  const { runs } = await project.client()
  const partitions = selection.includes('parted') ? { partitions: ['*'] } : {}
  const { run_id } = await runs.request({ select: selection, ...partitions }, 'ada')
  for await (const _ of runs.follow(run_id, new AbortController().signal));
  const { tasks } = await runs.get(run_id)
  return Object.fromEntries(tasks.map(({ task_key, state, error_message }) => [task_key, error_message ?? state]))
}

const filesIn = (folder: string): string[] =>
  fs
    .readdirSync(path.join(workspace, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))

test('[D9] small values have no files, and inputs, programs, servo show and SQL read them as they read files', async () => {
  const assets = filesIn('data').map((file) => path.relative(path.join(workspace, 'data'), file).split(path.sep)[0])
  expect(assets.sort()).toEqual(['long', 'parted', 'refused', 'token'])
  expect(await project.json('show', 'total')).toEqual([100, null, 5_000, 'short', 5_000])
  expect((await project.servo('show', 'none')).stdout).toBe('null\n')
  const { stdout } = await project.servo('show', 'parted', '--format', 'csv')
  expect(stdout.split('\n').map((line) => line.slice(0, 8))).toEqual(['partitio', 'b,yyyyyy', 'a,short', ''])
  const { run_id } = (await (await project.client()).runs.list({ limit: 1 }))[0] ?? {}
  const { tasks } = await (await project.client()).runs.get(String(run_id))
  expect(tasks.map(({ state }) => state)).toEqual(['SUCCEEDED', 'SUCCEEDED'])
  expect(await project.query('select value from amount')).toEqual([{ value: { amount: 100, of: 'ü' } }])
  expect(await project.query('select partition, length(value::varchar) as long from parted order by partition')).toEqual([
    { partition: 'a', long: 7 },
    { partition: 'b', long: 5_002 },
  ])
})

test('[D9] a value that quotes a secret is a file, and so is one that a check refused: the ledger has neither', () => {
  const ledger = filesIn('ledger').map((file) => fs.readFileSync(file, 'utf8'))
  expect(ledger.filter((text) => text.includes('\\"amount\\":100'))).toHaveLength(1)
  expect(ledger.filter((text) => text.includes(SECRET) || text.includes('not this'))).toEqual([])
})

test('[D10] a file that was edited is named and not read, and a wiped value is read by nobody', async () => {
  const [file = ''] = filesIn('data/long')
  fs.chmodSync(file, 0o600)
  fs.writeFileSync(file, JSON.stringify('z'.repeat(5_000)))
  const changed = /data\/long\/_\/mat_\w+\.json was changed after it was written: its SHA-256/
  expect(await ran('total')).toEqual({ total: expect.stringMatching(changed) })
  expect(await project.servo('show', 'long')).toMatchObject({ code: 1, stderr: expect.stringMatching(changed) })
  await expect(project.query('select value from long')).rejects.toThrow('was changed after it was written')
  expect(await ran('long')).toEqual({ long: 'SUCCEEDED' })
  expect(await ran('total')).toEqual({ total: 'SUCCEEDED' })

  await (await project.client()).assets.wipe('amount', {}, 'ada')
  expect(await project.servo('show', 'amount')).toMatchObject({ code: 2, stderr: expect.stringContaining('was wiped') })
  await published('select * from partition_status where wiped_at is not null')
  await expect(project.query('select value from amount')).rejects.toThrow('has nothing to show')
  await expect((await project.client()).runs.request({ select: ['program'] }, 'ada')).rejects.toThrow('amount')
})

test('a value whose file is gone is an error of servo query, not a row less', async () => {
  const [{ last_materialization_path: file }] = (await project.json('partitions', 'list', 'long')).partitions
  fs.rmSync(path.join(workspace, file))
  await published(`select * from stored_values where path = '${file}'`)
  expect(await project.servo('query', 'from long')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/is missing\nhint: Materialize the asset again/),
  })
})
