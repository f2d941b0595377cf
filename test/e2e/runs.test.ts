import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runIdFromRunKey } from '../../src/domain/runs/run-ids.ts'
import type { WorkspaceSecrets } from '../../src/ports/secrets.ts'
import { localComponents } from '../../src/server/components.ts'
import { descendants } from './support/processes.ts'
import { projectOf, TestProject } from './support/project.ts'
import { until } from './support/until.ts'

const ASSETS = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, daily, table } from 'servo-flow'
import { z } from 'zod'

const rows = z.object({ n: z.number() })
export const ok = table('ok', { group: 'fine', schema: rows, run: () => [{ n: 1 }, { n: 2 }] })
export const sum = asset('sum', {
  group: 'fine',
  inputs: { ok },
  run: async ({ ok }) => (await ok.rows()).reduce((total, row) => total + row.n, 0),
  checks: { 'all rows are there': (total) => total === 3 },
})
export const flaky = asset('flaky', {
  group: 'sick',
  run() {
    console.log('looking for repaired')
    if (!existsSync('repaired')) throw new Error('not repaired')
  },
})
export const below = asset('below', { group: 'sick', deps: [flaky], run: () => undefined })
export const beside = asset('beside', { group: 'sick', run: () => undefined })

export const listens = asset('listens', {
  async run({ signal, log }) {
    log.info('listening')
    await sleep(600_000, undefined, { signal })
  },
})
export const deaf = asset('deaf', { run: () => sleep(600_000) })
export const retries = asset('retries', {
  retry: { attempts: 5, backoff: 'fixed', initial: '1h', max: '1h' },
  run() { throw new Error('come back later') },
})
export const first = asset('first', { pool: 'narrow', run: ({ signal }) => sleep(600_000, undefined, { signal }) })
export const second = asset('second', { pool: 'narrow', run: () => undefined })

const day = daily({ start: '2025-01-01' })
export const daily1 = asset('daily', { partitions: day, run: ({ partition }) => partition.key })
export const same = asset('same', {
  partitions: day,
  inputs: { value: daily1 },
  run({ value, partition }) { if (value !== partition.key) throw new Error('wrong partition') },
})
export const before = asset('before', { partitions: day, inputs: { value: daily1.offset(-1) }, run: () => undefined })
export const pooled = asset('pooled', { pool: 'narrow', partitions: day, inputs: { value: daily1.offset(-1) }, run: () => undefined })

export const chatty = asset('chatty', {
  async run() {
    console.log('one')
    console.error('two')
    while (!existsSync('more')) await sleep(20)
    console.log('three')
  },
})
`

/** Whoever does not listen is killed soon. */
const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'shop', dirs: ['assets'], pools: { narrow: 1 }, timing: { cancelGrace: '2s' } })
`

const shortId = (runId: string): string => runId.slice(0, 12)

describe('with a server', () => {
  let project: TestProject
  beforeAll(async () => {
    project = new TestProject({ 'assets/all.ts': ASSETS, 'servo.config.ts': CONFIG })
    await project.dev('--concurrency', '6')
  })
  afterAll(() => project.end())

  const state = async (runId: string): Promise<unknown> => (await project.shown(runId)).run['state']
  const taskState = async (runId: string, key: string): Promise<unknown> =>
    (await project.shown(runId)).tasks.find((task) => task['task_key'] === key)?.['state']
  const cancel = async (runId: string): Promise<unknown> =>
    await (await project.client()).runs.cancel(runId, 'somebody', undefined)

  test('a run that is under way cannot be run again', async () => {
    const run_id = await project.request('listens')
    const early = await project.servo('runs', 'rerun', run_id)
    expect(early.stderr).toMatch(/has not ended yet\nhint: Wait for it, or cancel it first: servo runs cancel run_/)
    expect(early.code).toBe(2)
    await cancel(run_id)
  })

  test('[D3] an asset that is run alone reads what an earlier run made', async () => {
    expect((await project.servo('run', 'ok')).code).toBe(0)
    expect((await project.servo('run', 'sum')).code).toBe(0)
  })

  test('an asset whose input was never made is refused, with the command that makes both', async () => {
    project.write(
      'assets/orphan.ts',
      `import { asset } from 'servo-flow'\nexport const made = asset('made', { run: () => 1 })\nexport const needs = asset('needs', { inputs: { made }, run: () => 1 })\n`,
    )
    const client = await project.client()
    await until(async () =>
      (await client.assets.list({ select: [], limit: 100 })).assets.some(({ asset_key }) => asset_key === 'needs'),
    )
    const { stderr, code } = await project.servo('run', 'needs')
    expect(stderr).toBe(
      'error: needs needs made, which was never materialized\nhint: Materialize it in the same run: servo run made needs\n',
    )
    expect(code).toBe(2)
  })

  test('[D3] --partition runs assets for partitions, each with its own inputs; an input that is gone by then fails its task', async () => {
    const days = ['--partition', '2025-03-01', '--partition', '2025-03-02']
    const refused = await project.servo('run', 'daily', 'same', 'before', ...days)
    expect(refused.stderr).toMatch(/^error: before\[2025-03-01\] needs daily\[2025-02-28\], which was never materialized\n/)
    expect(refused.code).toBe(2)
    expect((await project.servo('run', 'daily[2025-02-28]')).code).toBe(0)
    // It waits for room while the input is wiped that it had when it was requested.
    const busy = await project.request('first')
    await until(async () => (await taskState(busy, 'first')) === 'RUNNING')
    const { run_id } = await project.json('run', 'daily', 'same', 'before', 'pooled', ...days, '--detach')
    await project.servo('partitions', 'wipe', 'daily', '--partition', '2025-02-28', '--yes')
    await cancel(busy)
    await until(async () => (await state(run_id)) === 'FAILED')
    const { stdout } = await project.servo('runs', 'show', run_id)
    expect(stdout).toMatch(/succeeded +\d+ ms {2}same\[2025-03-02\]\n/)
    expect(stdout).toMatch(/succeeded +\d+ ms {2}before\[2025-03-02\]\n/)
    expect(stdout).toMatch(/failed +pooled\[2025-03-01\] {2}pooled.* needs daily\[2025-02-28\] \(its input value\)/)
    expect(stdout).toMatch(/ 7 succeeded, 1 failed in /)
  })

  test('list shows the newest runs first, with state, time, tasks, how long they took and what was asked for', async () => {
    await project.servo('run', 'group:fine')
    const { stdout, code } = await project.servo('runs', 'list', '--limit', '2')
    const [head, newest, ...others] = stdout.trimEnd().split('\n')
    expect(head).toMatch(/^run +state +requested +tasks +took +asked by +selection$/)
    expect(newest).toMatch(/^run_\w{8} {2}succeeded +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +2\/2 +[\d.]+ m?s {2}\S+ +group:fine$/)
    expect(others).toHaveLength(1)
    expect(code).toBe(0)
  })

  test('list --status shows runs in that state', async () => {
    await project.servo('run', 'flaky')
    const failed = await project.json('runs', 'list', '--status', 'failed')
    expect(failed.length).toBeGreaterThan(0)
    expect(new Set(failed.map((run: { state: string }) => run.state))).toEqual(new Set(['FAILED']))
  })

  test('labels and priority are kept with the run', async () => {
    const { run_id } = await project.json('run', 'ok', '--label', 'team=sales', '--label', 'why=a=b', '--priority', '7')
    const { run, tasks } = await project.json('runs', 'show', run_id)
    expect(run).toMatchObject({ labels: { team: 'sales', why: 'a=b' }, priority: 7 })
    expect(tasks).toMatchObject([{ task_key: 'ok', priority: 7 }])
    expect((await project.servo('runs', 'show', run_id)).stdout).toContain('team=sales why=a=b')
  })

  test('[T1] the same key asked for again is the same run; for other assets it is a conflict', async () => {
    const first = await project.json('run', 'ok', '--key', 'nightly', '--detach')
    const again = await project.json('run', 'ok', '--key', 'nightly', '--detach')
    expect(again).toMatchObject({ run_id: first.run_id, created: false })
    const other = await project.servo('run', 'sum', '--key', 'nightly')
    expect(other.stderr).toContain(`another request used this key and created ${first.run_id}\nhint: Use a new key`)
    expect(other.code).toBe(2)
  })

  test('rerun runs what failed and what was skipped because of it, and leaves alone what succeeded', async () => {
    const asked = await project.servo('run', 'group:sick')
    expect(asked.code).toBe(1)
    const [, id] = /failed {2}(run_\w{8})/.exec(asked.stdout) as RegExpExecArray
    const still = await project.servo('runs', 'rerun', id as string)
    expect(still.stdout).toMatch(/failed {2}run_\w{8} {2}1 failed, 1 skipped/)
    expect(still.code).toBe(1)

    project.write('repaired')
    const repaired = await project.servo('runs', 'rerun', id as string)
    expect(repaired.stdout).toMatch(/succeeded {2}run_\w{8} {2}2 tasks/)
    expect(repaired.code).toBe(0)
    const all = await project.servo('runs', 'rerun', id as string, '--all')
    expect(all.stdout).toMatch(/succeeded {2}run_\w{8} {2}3 tasks/)
    const part = await project.servo('runs', 'rerun', id as string, '--select', 'beside')
    expect(part.stdout).toMatch(/succeeded {2}run_\w{8} {2}1 task /)

    const once = await project.json('runs', 'rerun', id as string, '--key', 'once', '--detach')
    expect(await project.json('runs', 'rerun', id as string, '--key', 'once', '--detach')).toMatchObject({
      run_id: once.run_id,
      created: false,
    })
    await until(async () => (await state(once.run_id)) === 'SUCCEEDED')
    const nothing = await project.servo('runs', 'rerun', once.run_id)
    expect(nothing.stderr).toMatch(/nothing in run_\w+ needs to run again\nhint: Every task succeeded. Use --all/)
    expect(nothing.code).toBe(2)
    project.remove('repaired')
  })

  test('logs are what the tasks printed, each line with its task; one task and one attempt can be picked', async () => {
    project.write('more')
    const { run_id } = await project.json('run', 'chatty', 'flaky').catch(async () => (await project.json('runs', 'list'))[0])
    const all = await project.servo('runs', 'logs', run_id)
    for (const line of ['chatty │ one', 'chatty │ ERROR two', 'chatty │ three', 'flaky │ looking for repaired'])
      expect(all.stdout).toMatch(new RegExp(`^\\d\\d:\\d\\d:\\d\\d ${line}$`, 'm'))
    const some = await project.servo('runs', 'logs', run_id, '--task', 'chatty', '--attempt', '1', '--json')
    expect(
      some.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { task_key: 'chatty', attempt: 1, stream: 'stdout', text: 'one' },
      { task_key: 'chatty', attempt: 1, stream: 'stderr', text: 'two' },
      { task_key: 'chatty', attempt: 1, stream: 'stdout', text: 'three' },
    ])
    expect((await project.servo('runs', 'logs', run_id, '--task', 'other')).stdout).toBe('')
    project.remove('more')
  })

  test('logs -f shows what was printed before and what is printed from then on, each line once, and ends with the run', async () => {
    const run_id = await project.request('chatty')
    await until(async () => (await taskState(run_id, 'chatty')) === 'RUNNING')
    const following = project.begin(['runs', 'logs', '-f', shortId(run_id)])
    await following.says(/two\n/)
    project.write('more')
    const { stdout, code } = await following.ended
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.slice(9)),
    ).toEqual(['chatty │ one', 'chatty │ ERROR two', 'chatty │ three'])
    expect(code).toBe(0)
    project.remove('more')
  })

  test('cancel ends what waits for room, what listens and what waits for a retry; no retry starts', async () => {
    const [listens, retries, first] = [
      await project.request('listens'),
      await project.request('retries'),
      await project.request('first'),
    ]
    for (const [id, key, wanted] of [
      [listens, 'listens', 'RUNNING'],
      [retries, 'retries', 'RETRY_WAIT'],
      [first, 'first', 'RUNNING'],
    ] as const)
      await until(async () => (await taskState(id, key)) === wanted, `${key} to be ${wanted}`)
    const second = await project.request('second')
    expect(await taskState(second, 'second')).toBe('READY')
    const running = await project.json('runs', 'list', '--status', 'running')
    expect(running.map((run: { run_id: string }) => run.run_id)).toEqual(expect.arrayContaining([listens, first]))

    const cancelled = [second, retries, listens, first]
    expect((await project.servo('runs', 'cancel', second)).code).toBe(0)
    for (const id of [retries, listens, first]) await cancel(id)
    for (const id of cancelled) await until(async () => (await state(id)) === 'CANCELLED', `${id} to be cancelled`)
    const { tasks, attempts } = await project.shown(retries)
    expect(tasks).toMatchObject([{ state: 'CANCELLED', attempt: 1 }])
    expect(attempts).toMatchObject([{ attempt: 1, outcome: 'FAILED' }])
    expect((await project.shown(second)).attempts).toEqual([])
  })

  test('Ctrl-C while waiting for a run leaves it alone; cancelling the run ends the wait with 1', async () => {
    const left = project.begin(['run', 'first', '--key', 'left'])
    await left.says(/1 task\n/)
    left.kill('SIGINT')
    const { code, stdout } = await left.ended
    expect(stdout).toMatch(/continues on the server; cancel it with: servo runs cancel run_\w{8}\n$/)
    expect(code).toBe(130)
    const watched = project.begin(['run', 'first', '--key', 'left'])
    await watched.says(/1 task\n/)
    const [, id] = /^(run_\w{8})/.exec(watched.shown) as RegExpExecArray
    await cancel(id as string)
    expect((await watched.ended).code).toBe(1)
  })

  test('--json is JSON, whatever the command and whether it succeeds or fails', async () => {
    const { run_id } = await project.json('run', 'ok', '--detach')
    await until(async () => (await state(run_id)) === 'SUCCEEDED')
    expect(await project.json('run', 'ok')).toMatchObject({ state: 'SUCCEEDED', tasks_total: 1 })
    expect(await project.json('runs', 'list')).toBeInstanceOf(Array)
    expect(await project.json('runs', 'show', run_id)).toMatchObject({
      run: { run_id },
      tasks: [{ task_key: 'ok' }],
      attempts: [{ attempt: 1 }],
    })
    expect(await project.json('runs', 'rerun', run_id, '--all', '--detach')).toMatchObject({
      created: true,
      run_id: expect.stringMatching(/^run_/),
    })
    const failed = await project.servo('run', 'flaky', '--json')
    expect(JSON.parse(failed.stdout)).toMatchObject({ state: 'FAILED' })
    expect(failed.code).toBe(1)
    for (const wrong of [
      ['runs', 'cancel', run_id],
      ['runs', 'show', 'run_zzzzzzzz'],
      ['run', 'nope'],
      ['dev'],
      ['runs', 'list', '--limit', 'x'],
    ]) {
      const { stdout, stderr, code } = await project.servo(...wrong, '--json')
      expect(stdout).toBe('')
      expect(JSON.parse(stderr).error, wrong.join(' ')).toMatchObject({ code: expect.any(String), message: expect.any(String) })
      expect(code).toBe(2)
    }
  })

  test('[C1][C3] a task that does not listen is killed when its grace is over; its run can be cancelled twice, but not after its end', async () => {
    const run_id = await project.request('deaf')
    await until(async () => (await taskState(run_id, 'deaf')) === 'RUNNING')
    const { stdout, code } = await project.servo('runs', 'cancel', shortId(run_id), '--reason', 'first')
    expect(stdout).toBe(`${run_id} is being cancelled\n`)
    expect(code).toBe(0)
    // Without a process in between, it comes before the grace is over.
    expect(await cancel(run_id)).toMatchObject({ run_id })
    await until(async () => (await state(run_id)) === 'CANCELLED')
    expect((await project.shown(run_id)).attempts).toMatchObject([{ attempt: 1, outcome: 'CANCELLED' }])
    const late = await project.servo('runs', 'cancel', run_id)
    expect(late.stderr).toMatch(/^error: run_\w+ has already ended: cancelled\nhint: There is nothing to cancel/)
    expect(late.code).toBe(2)
  })

  test('an id that no run has is refused, and one that several begin with is not guessed', async () => {
    const unknown = await project.servo('runs', 'show', 'run_zzzzzzzz')
    expect(unknown.stderr).toBe('error: run "run_zzzzzzzz" not found\nhint: `servo runs list` lists the newest runs.\n')
    expect(unknown.code).toBe(2)
    for (const nonsense of ["run_'; drop table runs", '../../etc', 'x'])
      expect((await project.servo('runs', 'logs', nonsense)).code).toBe(2)

    const { scope, secrets } = localComponents(project.file('.servo'))
    const { run_ids: secret } = (await secrets.read()) as WorkspaceSecrets
    const idOf = (key: string): string => runIdFromRunKey(scope.tenant_id, scope.workspace_id, `user:${key}`, secret)
    // The first letter of an id is one of 32: among so many keys there are two with the same.
    const keys = Array.from({ length: 1_000 }, (_, i) => `twin ${i}`)
    const start = idOf('twin 0').slice(0, 5)
    const twins = [0, keys.findIndex((key, i) => i > 0 && idOf(key).startsWith(start))].map((i) => keys[i] as string)
    const client = await project.client()
    for (const key of twins) await client.runs.request({ select: ['ok'], key }, 'somebody')
    const ambiguous = await project.servo('runs', 'show', start)
    expect(ambiguous.stderr).toMatch(new RegExp(`^error: several runs start with ${start}\nhint: Write more characters: `))
    for (const key of twins) expect(ambiguous.stderr).toContain(idOf(key))
    expect(ambiguous.code).toBe(2)
  })
})

describe('without a server', () => {
  test('servo run runs here, and everything can be looked at afterwards', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const empty = await project.servo('runs', 'list')
    expect(empty.stderr).toMatch(/^error: nothing is recorded in .*\.servo yet\nhint: Start the project with servo dev/)
    expect(empty.code).toBe(2)

    expect((await project.servo('run', 'group:fine')).stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}2 tasks/)
    const failed = await project.servo('run', 'group:sick', '--concurrency', '1')
    expect(failed.stdout).toMatch(/\nfailed {2}run_\w{8} {2}1 succeeded, 1 failed, 1 skipped/)
    expect(failed.code).toBe(1)

    const [run] = await project.json('runs', 'list', '--status', 'failed')
    const shown = await project.asked('runs', 'show', shortId(run.run_id))
    expect(shown.stdout).toMatch(/^failed {2}run_\w{8} {2}1 succeeded, 1 failed, 1 skipped in /)
    expect(shown.stdout).toMatch(/\n {2}failed +\d+ ms {2}flaky {3}not repaired\n/)
    expect((await project.asked('runs', 'logs', run.run_id)).stdout).toMatch(/flaky │ looking for repaired\n/)
    expect((await project.servo('runs', 'cancel', run.run_id)).code).toBe(2)

    project.write('repaired')
    const again = await project.servo('runs', 'rerun', run.run_id)
    expect(again.stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}2 tasks/)
    expect(again.code).toBe(0)
  })

  test('Ctrl-C cancels a run that runs here, and ends with 130', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const run = project.begin(['run', 'listens'])
    await run.says(/listens │ listening\n/)
    // One task needs one worker.
    expect(descendants(run.pid)).toHaveLength(1)
    run.kill('SIGINT')
    const { stdout, stderr, code } = await run.ended
    expect(stderr).toMatch(/cancelling run_\w{8}; press Ctrl-C again to exit at once/)
    expect(stdout).toMatch(/\n {2}cancelled +[\d.]+ m?s {2}listens/)
    expect(stdout).toMatch(/\ncancelled {2}run_\w{8} {2}1 task in/)
    expect(code).toBe(130)
    expect(await project.json('runs', 'list')).toMatchObject([{ state: 'CANCELLED' }])
    expect(fs.existsSync(project.file('.servo/local/server.json'))).toBe(false)
  })

  test('[C4] a run whose server was killed is cancelled without one, and does not go on at the next start', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const dev = await project.dev()
    const run_id = await project.request('deaf')
    await dev.says(/ running +deaf\n/)
    dev.kill('SIGKILL')
    await dev.ended
    expect(await project.json('runs', 'list')).toMatchObject([{ run_id, state: 'RUNNING' }])
    const cancelled = await project.servo('runs', 'cancel', run_id)
    expect(cancelled.stdout).toContain('tasks that were running when the server stopped end at its next start')
    await project.dev()
    await until(async () => (await project.shown(run_id)).run['state'] === 'CANCELLED')
    expect((await project.shown(run_id)).attempts).toHaveLength(1)
  })
})
