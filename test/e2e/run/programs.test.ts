import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { localComponents } from '../../../src/server/components.ts'
import { rowsOfNewest } from '../../../src/server/sql-rows.ts'
import { pythonWithPackages } from '../../python.ts'
import { TestProject } from '../support/project.ts'
import { shell } from '../support/servo.ts'
import { until } from '../support/until.ts'

/** Python needs no package here: the script reads what Pipes gives it as the package does. */
const hasPython = ((): boolean => {
  try {
    execFileSync('python3', ['--version'], { stdio: 'pipe' })
    return true
  } catch (error) {
    if (process.env['SERVO_REQUIRE_ALL'] === '1') throw error
    console.warn('Python programs are not tested: there is no python3')
    return false
  }
})()

const ASSETS = `import { asset, check, command, daily, dynamic, keys, multi, previous, table } from 'servo-flow'
import { z } from 'zod'

const day = daily({ start: '2025-03-01', end: '2025-03-04', timezone: 'America/New_York' })
const row = z.object({ id: z.string(), amount: z.number() })

export const settings = asset('settings', { run: () => ({ factor: 2 }) })
export const orders = table('raw/orders', {
  partitions: day,
  schema: row,
  run: ({ partition }) => [1, 2].map((n) => ({ id: partition.key + '-' + n, amount: n })),
})

/** Receives rows and small values over Pipes, and returns rows. */
export const scores = command('ml/scores', {
  partitions: day,
  inputs: { orders, settings, before: previous() },
  run: ['python3', 'scripts/scores.py'],
  output: 'scores.ndjson',
  schema: z.object({ id: z.string(), score: z.number(), at: z.date(), before: z.string().nullable() }),
  checks: { 'one row per order': check.unique('id') },
})
/** Python rows are rows: typed, in SQL, loaded as any table. */
export const best = asset('best', {
  inputs: { scores: scores.all() },
  run: async ({ scores }) => (await scores.rows()).map(({ id, score, at }) => [id, score, at.getUTCHours()]),
})

/** A plain program is told everything in variables. */
export const told = command('told', {
  partitions: multi({ day, region: keys(['eu', 'us']) }),
  inputs: { orders, allOrders: orders.all(), settings },
  run: ['sh', 'scripts/told.sh'],
  output: 'told.csv',
  schema: z.object({ name: z.string(), value: z.string() }),
})

export const bad = command('bad', {
  partitions: keys(['missing', 'column', 'check', 'fine']),
  run: ['sh', 'scripts/bad.sh'],
  output: 'rows.csv',
  schema: row,
  checks: { 'ids are unique': check.unique('id') },
})

export const locked = command('locked', { run: ['./scripts/told.sh'] })

/** The assets of docs/query.md. */
export const revenue = table('mart/revenue', {
  partitions: keys(['eu', 'us']),
  schema: z.object({ revenue: z.number() }),
  run: () => [{ revenue: 5 }, { revenue: 7 }],
})
export const headline = asset('mart/headline', { run: () => ({ text: 'EU leads' }) })

/** Names that SQL and people may trip over. */
export const runs = table('runs', { schema: row, run: () => [{ id: 'mine', amount: 1 }] })
export const clash = table('clash', {
  partitions: keys(["it's", 'eu']),
  schema: z.object({ partition: z.number() }),
  run: () => [{ partition: 7 }],
})
export const perCustomer = asset('per/customer', {
  partitions: dynamic('customers'),
  run: ({ partition }) => ({ customer: partition.key }),
})
export const never = table('never', { schema: row, run: () => [] })
`

const SCORES = `import base64, json, os, sys, zlib

params = json.loads(zlib.decompress(base64.b64decode(os.environ["DAGSTER_PIPES_CONTEXT"])))
context = params["data"] if "data" in params else json.load(open(params["path"]))
inputs = context["extras"]["inputs"]
orders, before = inputs["orders"], inputs["before"]
assert inputs == json.load(open(os.environ["SERVO_INPUTS"])), "both ways tell the same"
assert orders["path"] == os.environ["SERVO_INPUT_ORDERS"] == orders["files"][0]["path"]
assert orders["asset"] == "raw/orders" and orders["format"] == "parquet"
assert orders["files"][0]["partition"] == context["partition_key"]
assert open(orders["path"], "rb").read(4) == b"PAR1"
factor = inputs["settings"]["files"][0]["value"]["factor"]
assert json.load(open(inputs["settings"]["path"])) == {"factor": factor}
earlier = before["files"][0]["partition"] if before["path"] else None
assert (os.environ["SERVO_INPUT_BEFORE"] == "") == (earlier is None)
with open(os.path.join(os.environ["SERVO_OUTPUT"], "scores.ndjson"), "w") as out:
    for n in (1, 2):
        key = context["partition_key"]
        row = {"id": f"{key}-{n}", "score": n * factor, "at": context["partition_time_window"]["start"], "before": earlier}
        print(json.dumps(row), file=out)
`

const TOLD = `set -eu
{
  echo name,value
  printf '%s,"%s"\\n' ASSET "$SERVO_ASSET" PARTITION "$SERVO_PARTITION" PARTITION_DAY "$SERVO_PARTITION_DAY"
  printf '%s,"%s"\\n' PARTITION_REGION "$SERVO_PARTITION_REGION" ATTEMPT "$SERVO_ATTEMPT"
  printf '%s,"%s"\\n' WINDOW_START "$SERVO_WINDOW_START" WINDOW_END "$SERVO_WINDOW_END"
  printf '%s,"%s"\\n' files "$(grep -o '"path":"' "$SERVO_INPUT_ALL_ORDERS" | wc -l | tr -d ' ')"
  printf '%s,"%s"\\n' settings "$(sed 's/"/""/g' "$SERVO_INPUT_SETTINGS")"
  printf '%s,"%s"\\n' parquet "$(head -c 4 "$SERVO_INPUT_ORDERS")" folder "$SERVO_OUTPUT"
} > "$SERVO_OUTPUT/told.csv"
test -n "$SERVO_RUN_ID"
`

const BAD = `case "$SERVO_PARTITION" in
  missing) ;;
  column) printf 'id,amount\\na,1\\nb,many\\n' > "$SERVO_OUTPUT/rows.csv" ;;
  check) printf 'id,amount\\na,1\\na,2\\n' > "$SERVO_OUTPUT/rows.csv" ;;
  fine) printf 'id,amount\\n007,1\\n' > "$SERVO_OUTPUT/rows.csv" ;;
esac
`

/** The modules and scripts that docs/sdk.md shows under "What a program is given", by the file each says it is. */
const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../../docs/sdk.md'), 'utf8')
const shown = Object.fromEntries(
  [...page.matchAll(/^```\w+\n(?:\/\/|#) (assets\/programs\.ts|scripts\/\S+)\n([\s\S]*?)^```$/gm)].map(([, file, text]) => [
    file,
    text,
  ]),
)
const python = pythonWithPackages('The Python examples of docs/sdk.md are not run')

const project = new TestProject({
  ...shown,
  'assets/shop.ts': ASSETS,
  'scripts/scores.py': SCORES,
  'scripts/told.sh': TOLD,
  'scripts/bad.sh': BAD,
})
/** How the partitions of `bad` ended. */
let ended: Record<string, string | null> = {}

beforeAll(async () => {
  await project.devIn(python === undefined ? {} : { PATH: `${path.dirname(python)}:${process.env['PATH']}` })
  const { runs, assets } = await project.client()
  /** Runs a selection to its end. */
  const make = async (selection: string[], partitions?: string[]) => {
    const { run_id } = await runs.request({ select: selection, ...(partitions && { partitions }) }, 'ada')
    for await (const _ of runs.follow(run_id, new AbortController().signal));
    return await runs.get(run_id)
  }
  await assets.changeKeys('customers', { add: ['acme', 'hooli', 'initech'] }, 'ada')
  const days = ['2025-03-01..2025-03-03']
  const made = [
    await make(['settings', 'runs', 'mart/headline']),
    await make(['mart/revenue'], ['eu', 'us']),
    await make(['raw/orders'], days),
    await make(['told'], ['day=2025-03-02,region=eu']),
    await make(['clash'], ["it's", 'eu']),
    await make(['per/customer'], ['acme', 'hooli', 'initech']),
    ...(hasPython ? [await make(['ml/scores'], days), await make(['best'])] : []),
    ...(python === undefined ? [] : [await make(['web/visits', 'web/pages', 'web/archive', 'web/report'], ['2025-03-01'])]),
  ]
  expect(made.flatMap(({ attempts }) => attempts.flatMap((attempt) => attempt.error_message ?? []))).toEqual([])
  expect(made.map(({ run }) => run.state)).toEqual(made.map(() => 'SUCCEEDED'))
  const { attempts } = await make(['bad'], ['missing', 'column', 'check', 'fine'])
  ended = Object.fromEntries(attempts.map(({ task_key, error_message }) => [task_key, error_message]))
  await assets.changeKeys('customers', { remove: ['hooli'] }, 'ada')
  await assets.wipe('per/customer', { partitions: ['initech'] }, 'ada')
  // Queries see what is published, which happens in order.
  const lastFact = "from partition_status where asset_key = 'per/customer' and wiped_at is not null"
  await until(async () => (await rowsOf(lastFact)).length === 1)
})
afterAll(() => project.end())

/** What `servo query` answers, without a process for each question. */
async function rowsOf(sql: string) {
  const { store, scope } = localComponents(project.file('.servo'))
  return await rowsOfNewest(project.file('.servo'), store, scope, sql)
}

test.runIf(hasPython)('a Python program receives tables and values, and its rows are those of a table', async () => {
  expect(await project.json('query', '.servo', 'select * from "ml/scores" order by id')).toEqual(
    [1, 2, 3].flatMap((day) =>
      [1, 2].map((n) => ({
        id: `2025-03-0${day}-${n}`,
        score: 2 * n,
        at: `2025-03-0${day}T05:00:00.000Z`,
        before: day === 1 ? null : `2025-03-0${day - 1}`,
        partition: `2025-03-0${day}`,
      })),
    ),
  )
  const value = JSON.parse((await project.servo('show', 'best')).stdout)
  expect(value).toHaveLength(6)
  expect(value[0]).toEqual(['2025-03-01-1', 2, 5])
})

test.runIf(python !== undefined)('the Python and shell programs of docs/sdk.md do what the page says', async () => {
  expect(Object.keys(shown)).toEqual(['assets/programs.ts', 'scripts/pages.py', 'scripts/archive.sh', 'scripts/report.py'])
  expect(await rowsOf('from "web/pages" order by page')).toEqual([
    { page: '/', visits: 2, seconds: 60, partition: '2025-03-01' },
    { page: '/about', visits: 1, seconds: 3, partition: '2025-03-01' },
  ])
  expect(project.has('archive/2025-03-01/pages.parquet')).toBe(true)
  const reported = "select output from task_attempts where task_key = 'web/report[2025-03-01]'"
  expect(await rowsOf(reported)).toMatchObject([
    { output: { metadata: { pages: 2 }, checks: [{ name: 'has pages', ok: true }] } },
  ])
})

test('a shell script is told its attempt and its inputs in variables, and its folder is gone afterwards', async () => {
  const rows: { name: string; value: string }[] = await project.json('show', 'told')
  const told = Object.fromEntries(rows.map(({ name, value }) => [name, value]))
  expect(told).toEqual({
    ASSET: 'told',
    PARTITION: 'day=2025-03-02,region=eu',
    PARTITION_DAY: '2025-03-02',
    PARTITION_REGION: 'eu',
    WINDOW_START: '2025-03-02T00:00:00-05:00',
    WINDOW_END: '2025-03-03T00:00:00-05:00',
    ATTEMPT: '1',
    files: '3',
    settings: '{"factor":2}',
    parquet: 'PAR1',
    folder: expect.stringMatching(/servo-.*-attempt-/),
  })
  expect(fs.existsSync(String(told['folder']))).toBe(false)
})

test('rows that are missing, do not fit or do not pass fail the attempt, and the error says where', () => {
  expect(ended).toEqual({
    'bad[missing]': expect.stringContaining('the program exited with 0 but wrote no file rows.csv'),
    'bad[column]': expect.stringContaining('row 2 of rows.csv (line 3) has "many" in column amount, which must be a number'),
    'bad[check]': expect.stringContaining('checks of bad failed: ids are unique'),
    'bad[fine]': null,
  })
})

test('a script that is not executable says how to run it', async () => {
  const { code, stdout } = await project.servo('run', 'locked', '--key', 'locked')
  expect(stdout).toContain(
    "./scripts/told.sh is not executable. Run chmod +x ./scripts/told.sh, or name its interpreter: ['sh', './scripts/told.sh']",
  )
  expect(code).toBe(1)
  const unnamed = await project.servo('run', 'locked', '--key', '')
  expect(unnamed).toMatchObject({
    code: 2,
    stderr: 'error: --key is empty\nhint: Give the request a name, or leave --key out.\n',
  })
})

test('servo query shows each asset as a view of what is current, with the partition as columns', async () => {
  expect(await rowsOf('select count(*) as n, partition from "raw/orders" group by all order by all')).toEqual(
    ['2025-03-01', '2025-03-02', '2025-03-03'].map((partition) => ({ n: 2, partition })),
  )
  // What was wiped is not current, nor what no longer exists.
  expect(await rowsOf('from "PER/customer"')).toEqual([{ value: { customer: 'acme' }, partition: 'acme' }])
  // Failed attempts published nothing; text stays text.
  expect(await rowsOf('from bad')).toEqual([{ id: '007', amount: 1, partition: 'fine' }])
  expect(await rowsOf('select distinct partition_day, partition_region from told')).toEqual([
    { partition_day: '2025-03-02', partition_region: 'eu' },
  ])
  expect(await rowsOf('from clash order by all')).toEqual([
    { partition: 7, partition_1: 'eu' },
    { partition: 7, partition_1: "it's" },
  ])
  expect(await rowsOf('select a.id, r.n from "asset/runs" a, (select count(*) > 5 as n from runs) r')).toEqual([
    { id: 'mine', n: true },
  ])
})

test('the examples of docs/query.md that name assets show their data', async () => {
  const queries = fs.readFileSync(path.resolve(import.meta.dirname, '../../../docs/query.md'), 'utf8')
  const lines = queries.split('\n').filter((line) => /^servo query .*mart\//.test(line))
  const answers = await Promise.all(lines.map((line) => shell(`${line} --csv`, project.dir)))
  expect(answers.map(({ stdout }) => stdout.trim().split('\n').slice(1))).toEqual([['eu,12', 'us,12'], ['EU leads']])
})

test('servo query says why an asset has nothing to show, and which there are', async () => {
  const never = await project.servo('query', '.servo', 'from never')
  expect(never).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('never has nothing to show: it was never materialized'),
  })
  const near = await project.servo('query', '.servo', 'from "raw/ordrs"')
  expect(near.stderr).toMatch(
    /table raw\/ordrs not found\nhint: Did you mean "raw\/orders"\? Tables: .* Assets: .*"raw\/orders"/,
  )
})

test('attach.sql shows the same views, by the state at the time it is run', async () => {
  const { folder } = await project.json('attach', '.servo')
  const before = process.cwd()
  process.chdir(project.file(folder))
  const connection = await (await DuckDBInstance.create(':memory:')).connect()
  try {
    await connection.run(fs.readFileSync('attach.sql', 'utf8'))
    const answer = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjectsJson()
    for (const sql of [
      'from "raw/orders" order by all',
      'from "per/customer"',
      'from told order by all',
      'from clash order by all',
      'from "asset/runs"',
      'from bad',
    ]) {
      expect(
        (await answer(`select to_json(t)::varchar as row from (${sql}) t`)).map(({ row }) => JSON.parse(String(row))),
      ).toEqual(await rowsOf(sql))
    }
    expect(await answer('from never')).toEqual([])
    expect(await answer('select count(*)::int as n from duckdb_views() where not internal and not temporary')).toEqual([
      { n: 0 },
    ])
  } finally {
    connection.closeSync()
    process.chdir(before)
  }
})
