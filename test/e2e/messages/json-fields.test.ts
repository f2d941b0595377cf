import fs from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { JSON_FIELDS } from '../../../src/cli/json/fields.ts'
import { TestProject } from '../support/project.ts'
import { Session } from '../support/session.ts'

const ASSETS = `import { asset, daily, dynamic, keys, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const whole = asset('whole', { run: () => ({ row_version: 1 }) })
export const bad = asset('bad', { run: () => { throw new Error('no') } })
export const days = asset('days', { partitions: daily({ start: '2025-01-01', end: '2025-01-09' }), run: () => 1 })
export const parts = asset('parts', { partitions: keys(['a', 'b', 'c']), run: () => 1 })
export const per = asset('per', { partitions: dynamic('customers'), run: () => 1 })
export const nightly = schedule('nightly', { cron: '0 5 * * *', select: [whole], labels: { spec: 'mine' } })
export const inbox = sensor.push('inbox', {
  source: webhook({ path: 'inbox', verify: 'none', schema: z.object({ id: z.number() }) }),
  on: ({ id }) => run(whole, { key: String(id) }),
})
`

let project: TestProject
let session: Session
let below = ''
beforeAll(async () => {
  project = new TestProject({ 'assets/all.ts': ASSETS })
  session = new Session()
  below = project.file('assets/deep/below')
  fs.mkdirSync(below, { recursive: true })
  await project.dev()
})
afterAll(async () => {
  session.end()
  await project.end()
})

/** Runs a command in a folder below the project. */
const servo = (...args: string[]) => session.servo(below, ...args)
const json = async (...args: string[]) => {
  const { stdout, stderr } = await servo(...args)
  expect(stdout, stderr).not.toBe('')
  return JSON.parse(stdout)
}

/** Each entry of a list or page, or the one thing that was printed. */
function entriesOf(value: object): object[] {
  if (Array.isArray(value)) return value
  return 'next_cursor' in value ? (Object.values(value).find(Array.isArray) ?? []) : [value]
}

test('what --json prints is what can be chosen, from any folder of the project, and nothing that only Servo can use', async () => {
  const { run_id } = await json('run', 'whole', 'bad', '--label', 'spec=mine', '--json')
  const { backfill_id } = await json('backfills', 'create', 'parts', '--partitions', 'a', '--wait', '--json')
  const asked: readonly string[] = [
    'backfills preview days --all',
    'backfills create parts --partitions a,b --wait',
    'backfills create parts --partitions c',
    'backfills list --limit 1',
    `backfills show ${backfill_id}`,
    `why backfill ${backfill_id}`,
    'run days --partition * --dry-run',
    'run whole --detach',
    'runs list --status failed --asset bad',
    `runs show ${run_id}`,
    `runs rerun ${run_id} --all`,
    'assets list',
    'assets show whole',
    'assets graph',
    'partitions status',
    'partitions list days --status missing --limit 2',
    'partitions stale days --limit 1',
    'partitions why days 2025-01-02',
    'partitions add customers acme',
    'partitions remove customers acme',
    'partitions keys customers',
    'partitions report days --partition 2025-01-01',
    'partitions wipe days --partition 2025-01-01 --yes',
    'schedules trigger nightly',
    'schedules list --status active',
    'schedules show nightly',
    'schedules ticks',
    'schedules catchup nightly 05:00 --dry-run',
    'schedules pause nightly',
    'schedules resume nightly',
    'sensors send inbox --data {"id":7} --id m-1',
    'sensors list --status active',
    'sensors show inbox',
    'sensors evals inbox',
    'sensors dead-letters inbox --all',
    'sensors pause inbox',
    'sensors resume inbox',
    'why schedule nightly',
    'why sensor inbox',
    `why run ${run_id}`,
    'why asset whole',
    'conflicts',
    'automation status',
    'automation pause',
    'automation resume',
    'tokens create --role viewer --name somebody',
    'tokens list',
    'verify --quick',
    'attach',
    'cron next @daily',
    'cron explain @daily',
    'check',
    'doctor',
  ]
  const secret =
    /"(?:row_version|\w*event_id|\w*fingerprints?|definition_(?:hash|version)|tenant_id|workspace_id|secret_id|plan_\w+|attempt_id)"/
  for (const line of asked) {
    const words = Object.keys(JSON_FIELDS).find((each) => line === each || line.startsWith(`${each} `)) ?? ''
    const printed = await json(...line.split(' '), '--json')
    const fields = JSON_FIELDS[words] ?? []
    expect.soft(JSON.stringify(printed), line).not.toMatch(secret)
    for (const entry of entriesOf(printed))
      expect
        .soft(
          Object.keys(entry).filter((name) => !fields.includes(name)),
          line,
        )
        .toEqual([])
    // Commands with several kinds of answers have the fields of all.
    const isOne = !/^(?:run|runs rerun|sensors send|conflicts)\b/.test(line)
    for (const entry of isOne ? entriesOf(printed).slice(0, 1) : [])
      expect
        .soft(
          fields.filter((name) => !Object.hasOwn(entry, name)),
          line,
        )
        .toEqual([])
  }
})

test('--json with fields prints these alone, wherever it stands, and refuses others before anything is done', async () => {
  const { schedules } = await json('schedules', 'list', '--json', 'schedule_name,status')
  expect(schedules).toEqual([{ schedule_name: 'nightly', status: 'active' }])
  expect(await json('assets', 'show', '--json', 'asset_id,wiped', 'whole')).toEqual({
    asset_id: expect.any(String),
    wiped: false,
  })
  expect(await json('runs', 'list', '--json=state', '--limit', '1')).toEqual([{ state: expect.any(String) }])
  expect(await json('query', 'select 1 as a, 2 as b', '--json', 'b')).toEqual([{ b: 2 }])
  // What users and their code wrote is theirs, whatever they called it.
  expect(await json('show', 'whole', '--json')).toEqual({ row_version: 1 })
  const [{ labels }] = await json('runs', 'list', '--asset', 'bad', '--json', 'labels')
  expect(labels).toEqual({ spec: 'mine' })

  const before = await json('runs', 'list', '--json', 'run_id')
  const refused = await servo('run', 'whole', '--json', 'run_id,stat')
  expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining("unknown field 'stat'") })
  expect(refused.stderr).toContain('Did you mean state? Fields: run_id, run_key, state')
  const tasks = await servo('run', 'whole', '--json', 'state,tasks')
  expect(tasks).toMatchObject({ code: 2, stderr: expect.stringContaining("unknown field 'tasks'") })
  expect(await json('run', 'whole', '--dry-run', '--json', 'tasks')).toMatchObject({ tasks: [{ asset_key: 'whole' }] })
  expect(await json('runs', 'list', '--json', 'run_id')).toEqual(before)
})

test('lists find runs, partitions and schedules by state, asset and time, with and without a result', async () => {
  const found = async (...args: string[]) => (await json('runs', 'list', ...args, '--json', 'state')).length
  expect(await found('--status', 'FAILED', '--asset', 'bad', '--since', '2025-01-01')).toBeGreaterThan(0)
  expect(await found('--asset', 'days')).toBe(0)
  expect(await found('--until', '2025-01-01')).toBe(0)
  expect((await servo('runs', 'list', '--asset', 'days')).stdout).toBe('no run matches\n')
  const failed = await json('partitions', 'list', '--status', 'failed', '--json', 'asset_key,status')
  expect(failed.partitions).toEqual([{ asset_key: 'bad', status: 'NEVER_MATERIALIZED' }])
  expect((await servo('schedules', 'list', '--status', 'paused')).stdout).toBe('no schedule is paused\n')
})

test('a long reason for a pause stands last, a repeated message is told from a new one, and a dry run shows ranges that exist', async () => {
  const reason = 'the warehouse is down '.repeat(10).trim()
  await servo('schedules', 'pause', 'nightly', '--reason', reason)
  const [head = '', row = ''] = (await servo('schedules', 'list')).stdout.split('\n')
  expect(head.length).toBeLessThan(160)
  expect(row).toMatch(new RegExp(`^nightly +paused .*${reason}`))

  const first = await servo('sensors', 'send', 'inbox', '--data', '{"id":8}', '--id', 'm-8')
  expect(first.stdout).toMatch(/^inbox: message accepted: 1 new run\n {2}message m-8\n {2}run_\w+\n$/)
  const again = await servo('sensors', 'send', 'inbox', '--data', '{"id":8}', '--id', 'm-8')
  expect(again.stdout).toMatch(
    /^inbox: message accepted before: no new run\n {2}message m-8\n {2}run_\w+ was requested then\n$/,
  )

  for (const day of ['2025-01-03', '2025-01-06']) await servo('run', 'days', '--partition', day, '--quiet')
  const preview = await servo('run', 'days', '--missing', '--dry-run')
  expect(preview.stdout).toBe(
    'would run 6 tasks; nothing is recorded\n  days[2025-01-01..2025-01-02], days[2025-01-04..2025-01-05], days[2025-01-07..2025-01-08]  6 tasks  never materialized\n',
  )
})
