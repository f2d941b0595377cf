import fs from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'
import type { Servo } from '../support/servo.ts'
import { lacksTerminal, Terminal } from '../support/terminal.ts'

const ASSETS = `import { asset, command, daily, Fatal, io, keys, multi, source, table } from 'servo-flow'
import { z } from 'zod'

export const raw = source('raw', { uri: 'raw/*.parquet', schema: z.object({ id: z.string() }) })
export const cities = table('cities', {
  schema: z.object({ city: z.string(), people: z.number().nullable(), since: z.date() }),
  run: () => [
    { city: '東京', people: 14_000_000, since: new Date('1457-01-01') },
    { city: 'Rome', people: null, since: new Date('2025-01-15T10:00:00Z') },
  ],
})
const when = z.date()
export const times = table('times', {
  schema: z.object({ a: when, b: when, c: when, d: when, e: when }),
  run: () => [new Date('2025-01-15T10:00:00Z')].map((at) => ({ a: at, b: at, c: at, d: at, e: at })),
})
export const nobody = table('nobody', { schema: z.object({ name: z.string() }), run: () => [] })
export const settings = asset('settings', { run: () => ({ theme: 'dark', sizes: [1, 2] }) })
export const note = asset('note', {
  io: io('text', { write: (text: string) => text, read: (bytes) => new TextDecoder().decode(bytes) }),
  run: () => 'hello',
})
export const silent = command('silent', { run: ['true'] })
export const broken = asset('broken', { run: () => { throw new Fatal('no') } })
export const unmade = asset('unmade', { run: () => 1 })
export const sales = table('sales', {
  partitions: multi({ region: keys(['eu', 'us']), product: keys(['book', 'pen']) }),
  schema: z.object({ region: z.string(), n: z.number() }),
  run: ({ partition }) => [1, 2].map((n) => ({ region: partition.key.region, n })),
})
const sparse = z.object({ id: z.number(), partition: z.string().optional(), note: z.string().optional() })
export const optional = table('optional', { partitions: keys(['a', 'b']), schema: sparse, run: ({ partition }) => partition.key === 'a' ? [{ id: 1 }] : [] })
export const wide = table('wide', {
  partitions: keys(['eu']),
  schema: z.object({ id: z.bigint(), partition: z.string() }),
  run: () => Array.from({ length: 60 }, (_, i) => ({ id: i === 0 ? 9007199254740993n : BigInt(i), partition: 'own' })),
})
export const numbers = asset('numbers', {
  partitions: daily({ start: '2025-01-01' }),
  run: ({ partition }) => Number(partition.key.slice(-2)),
})
`

const project = new TestProject({ 'assets/shop.ts': ASSETS })
let dev: Servo
beforeAll(async () => {
  dev = await project.dev()
  const { runs } = await project.client()
  const asked = [
    { select: ['cities', 'times', 'nobody', 'settings', 'note', 'silent'] },
    { select: ['sales'], partitions: ['product=book,region=eu', 'product=pen,region=us'] },
    { select: ['wide'], partitions: ['eu'] },
    { select: ['optional'], partitions: ['*'] },
    { select: ['numbers'], partitions: ['2025-01-01..2025-01-03'] },
  ]
  for (const body of asked) {
    const { run_id } = await runs.request(body, 'ada')
    for await (const event of runs.follow(run_id, new AbortController().signal))
      if (event.type === 'run' && event.run.state === 'FAILED') throw new Error(`${body.select} failed`)
  }
})
afterAll(() => project.end())

const show = async (...args: string[]) => {
  const { code, stdout, stderr } = await project.servo('show', ...args)
  return code === 0 ? stdout.trimEnd().split('\n') : { code, stderr }
}

test('servo show prints the rows of a table, as a table, as JSON and as CSV', async () => {
  expect(await show('cities')).toEqual([
    'city    people  since',
    '────  ────────  ────────────────────────',
    '東京  14000000  1457-01-01T00:00:00.000Z',
    'Rome      null  2025-01-15T10:00:00.000Z',
  ])
  expect(await project.json('show', 'cities', '--limit', '1')).toEqual([
    { city: '東京', people: 14_000_000, since: '1457-01-01T00:00:00.000Z' },
  ])
  expect(await show('cities', '--format', 'csv')).toEqual([
    'city,people,since',
    '東京,14000000,1457-01-01T00:00:00.000Z',
    'Rome,,2025-01-15T10:00:00.000Z',
  ])
  const limited = await project.servo('show', 'cities', '--limit', '1')
  expect(limited.stderr).toBe('1 row\nthere are more rows; --limit shows more of them\n')
  expect(await project.servo('show', 'nobody')).toMatchObject({ code: 0, stdout: '', stderr: 'nobody has no rows\n' })
})

test('servo show prints a value as JSON, and of any other file where it lies', async () => {
  expect(await project.json('show', 'settings')).toEqual({ theme: 'dark', sizes: [1, 2] })
  const [file] = await project.json('show', 'note')
  expect(file.bytes).toBe(5)
  expect(fs.readFileSync(file.path, 'utf8')).toBe('hello')
})

test('servo show prints all partitions that are made, or those that are named', async () => {
  expect(await show('sales')).toEqual([
    'partition_product  partition_region  region  n',
    '─────────────────  ────────────────  ──────  ─',
    'pen                us                us      1',
    'pen                us                us      2',
    'book               eu                eu      1',
    'book               eu                eu      2',
  ])
  expect(await show('numbers', '--format', 'csv', '--limit', '2')).toEqual(['partition,value', '2025-01-03,3', '2025-01-02,2'])
  expect(await show('numbers', '--partition', '2025-01-02')).toEqual(['2'])
})

test.skipIf(lacksTerminal)('servo show cuts no time on a screen, however narrow it is', async () => {
  const shown = new Terminal(['show', 'times'], project.dir)
  expect(await shown.ended).toBe(0)
  expect(shown.written.match(/2025-01-15T10:00:00\.000Z/g)).toHaveLength(5)
})

test('servo show says why there is nothing to show', async () => {
  const refused = (message: string) => ({ code: 2, stderr: expect.stringContaining(message) })
  expect(await show('unmade')).toEqual(
    refused('unmade was never materialized, or was wiped\nhint: Materialize it: servo run unmade'),
  )
  expect(await show('silent')).toEqual(refused('silent has no stored value'))
  expect(await show('raw')).toEqual(
    refused('raw is a source; Servo does not store its data\nhint: Its data is at raw/*.parquet.'),
  )
  expect(await show('citys')).toEqual(refused('cities?'))
  expect(await show('cities', '--partition', 'a')).toEqual(refused('cities has no partitions'))
  expect(await show('sales', '--partition', 'product=book,region=eux')).toEqual(refused('did you mean eu?'))
  fs.rmSync((await project.json('show', 'note'))[0].path)
  expect(await show('note')).toEqual({
    code: 1,
    stderr: expect.stringContaining('hint: The file was deleted after it was written'),
  })
  const { assets, runs } = await project.client()
  const { run_id } = await runs.request({ select: ['broken'] }, 'ada')
  for await (const _ of runs.follow(run_id, new AbortController().signal));
  expect(await show('broken')).toEqual(
    refused(
      `broken was never materialized: its last attempt failed in ${run_id.slice(0, 12)}\nhint: See why: servo runs show ${run_id.slice(0, 12)}\n`,
    ),
  )
  expect((await project.asked('partitions', 'why', 'numbers[2025-01-02]')).stdout).toMatch(
    /^numbers\[2025-01-02\] is materialized\n/,
  )
  expect((await project.asked('partitions', 'status', 'group:nope')).stdout).toBe('no asset matches group:nope\n')
  await assets.wipe('settings', {}, 'ada')
  expect(await show('settings')).toEqual(refused('settings was never materialized, or was wiped'))
})

test('servo show needs no server', async () => {
  dev.kill('SIGTERM')
  await dev.ended
  expect(await show('numbers', '--partition', '2025-01-02..2025-01-03', '--format', 'csv')).toEqual([
    'partition,value',
    '2025-01-03,3',
    '2025-01-02,2',
  ])
})

test('what a program reads is whole, and a column of bigints is text in every row', async () => {
  const rows = await project.json('show', 'wide')
  expect(rows).toHaveLength(60)
  expect(rows.slice(0, 2)).toEqual([
    { partition_1: 'eu', id: '9007199254740993', partition: 'own' },
    { partition_1: 'eu', id: '1', partition: 'own' },
  ])
})

test('a table has the columns that its schema declares, whether a row has a value in them or not', async () => {
  expect(await show('optional', '--format', 'csv')).toEqual(['partition_1,id,partition,note', 'a,1,,'])
  expect(await show('optional', '--partition', 'b', '--format', 'csv')).toEqual(['partition_1,id,partition,note'])
  expect(await show('optional', '--json', 'note')).toEqual(['[', '{"note":null}', ']'])
  expect(await show('nobody', '--format', 'csv')).toEqual(['name'])
})
