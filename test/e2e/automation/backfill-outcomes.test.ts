import { expect, test } from 'vitest'
import { projectOf, type TestProject } from '../support/project.ts'
import { until } from '../support/until.ts'

/** A day of February fails until somebody repairs it; what is slow waits until it is let go. */
const SHOP = `import { existsSync } from 'node:fs'
import { asset, daily, keys, monthly, previous } from 'servo-flow'
const day = daily({ start: '2025-01-01', end: '2025-04-01' })
const short = daily({ start: '2025-01-01', end: '2025-01-31' })
export const raw = asset('raw', {
  partitions: day,
  run: ({ partition }) => {
    if (partition.key === '2025-02-03' && !existsSync('repaired')) throw new Error('the export is damaged')
    return 1
  },
})
export const clean = asset('clean', { partitions: day, inputs: { raw }, run: () => 1 })
export const month = asset('month', { partitions: monthly({ start: '2025-01', end: '2025-04' }), inputs: { clean }, run: () => 1 })
export const chain = asset('chain', {
  partitions: short,
  inputs: { before: previous<number>() },
  run: ({ partition }) => {
    if (partition.key === '2025-01-01') throw new Error('no beginning')
    return 1
  },
})
export const slow = asset('slow', {
  partitions: keys(['a', 'b', 'c', 'd']),
  backfill: { chunk: 1 },
  run: async () => {
    while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  },
})
export const bad = asset('bad', {
  partitions: keys(['a', 'b', 'c', 'd']),
  backfill: { chunk: 1 },
  run: () => { throw new Error('never') },
})
`
const FEBRUARY = ['--start', '2025-02-01', '--end', '2025-02-28']

interface Made {
  readonly backfill_id: string
  readonly state: string
}

const made = async (project: TestProject, ...args: string[]): Promise<Made> =>
  (await project.json('backfills', 'create', ...args)) as Made

test('what a failed backfill lost, why, and what to do next is shown by show, why and servo dev, for any start of its id', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const dev = await project.dev()
  const ran = await project.servo('backfills', 'create', 'raw', 'clean', 'month', ...FEBRUARY, '--wait')
  const [, id = ''] = /^(bf_[0-9a-z]{26}) {2}57 partitions in 4 runs\n/.exec(ran.stdout) ?? []
  const line = `${id}  failed  57 of 57 partitions, 1 failed, 2 skipped\n`
  expect([ran.code, ran.stdout.endsWith(line)], ran.stdout + ran.stderr).toEqual([1, true])
  await dev.says(new RegExp(line.trimEnd()))

  const start = id.slice(0, 20)
  const shown = await project.asked('backfills', 'show', start)
  const why = await project.asked('why', 'backfill', start)
  for (const { stdout } of [shown, why]) {
    expect.soft(stdout).toMatch(/raw\[2025-02-03\] failed in run_[a-z2-7]{26}: the export is damaged/)
    expect.soft(stdout).toContain('clean[2025-02-03] was skipped because raw[2025-02-03] failed')
    expect.soft(stdout).toContain('month[2025-02] was skipped because raw[2025-02-03] failed')
    expect.soft(stdout).toContain(`servo backfills retry-failed ${id}`)
    expect.soft(stdout).not.toContain('not made; make')
  }
  expect(why.stdout).toContain('54 of 57 partitions succeeded, 1 failed, 2 were skipped; 4 of 4 chunks are planned')
  const [, run = ''] = /servo runs logs (run_[a-z2-7]{26}) --task 'raw\[2025-02-03\]'/.exec(shown.stdout) ?? []
  const log = await project.asked('runs', 'logs', run, '--task', 'raw[2025-02-03]')
  expect([log.code, log.stderr]).toEqual([0, ''])

  const broken = await made(project, 'chain', '--all')
  await until(
    async () => (await project.asked('backfills', 'show', broken.backfill_id)).stdout.includes('  failed  '),
    'it fails',
  )
  expect((await project.asked('why', 'backfill', broken.backfill_id)).stdout).toContain(
    'chain[2025-01-02] and 28 more were skipped because chain[2025-01-01] failed',
  )
  const several = await project.asked('backfills', 'show', 'bf_0')
  expect([several.code, several.stderr]).toEqual([2, expect.stringContaining('several backfills start with bf_0')])

  project.write('repaired')
  const retried = await project.servo('backfills', 'retry-failed', start, '--wait')
  expect([retried.code, retried.stdout], retried.stderr).toEqual([
    0,
    expect.stringMatching(/succeeded {2}3 of 3 partitions\n$/),
  ])
})

test('a backfill that is being cancelled says so, keeps the reason, and says how to make the rest', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const dev = await project.dev()
  const { backfill_id: id } = await made(project, 'slow', '--all', '--concurrency', '1')
  await until(async () => (await project.json('runs', 'list')).some((run: Made) => run.state === 'RUNNING'), 'it runs')
  const start = id.slice(0, 20)
  expect((await project.asked('backfills', 'change', start, '--stop-after-failures', '3')).code).toBe(0)
  expect((await project.json('backfills', 'show', start)).backfill.stop_after_failures).toBe(3)
  expect((await project.asked('backfills', 'change', start, '--stop-after-failures', 'none')).code).toBe(0)
  expect((await project.json('backfills', 'show', start)).backfill.stop_after_failures).toBe(null)
  expect((await project.asked('backfills', 'pause', start)).code).toBe(0)
  expect((await project.asked('backfills', 'resume', start)).code).toBe(0)
  expect((await project.asked('backfills', 'cancel', start, '--reason', 'wrong month')).code).toBe(0)
  const going = (await project.asked('backfills', 'show', id)).stdout
  expect(going).toContain(`${id}  cancelling  0 of 4 partitions\n`)
  expect(going).toMatch(/cancelled +requested at .* by .*: wrong month\n/)
  const late = await project.asked('backfills', 'pause', id)
  expect([late.code, late.stderr]).toEqual([2, expect.stringContaining(`${id} is being cancelled and cannot be paused`)])
  project.write('go')
  await dev.says(new RegExp(`${id} {2}cancelled {2}1 of 4 partitions: wrong month`))
  const over = (await project.asked('backfills', 'show', id)).stdout
  expect(over).toMatch(/cancelled +requested at .* by .*: wrong month\n/)
  const rest = 'servo backfills create slow --all --skip-existing'
  expect(over).toContain(`3 partitions were not made; make what does not exist: ${rest}`)
  const again = await project.servo(...rest.split(' ').slice(1), '--wait')
  expect([again.code, again.stdout], again.stderr).toEqual([0, expect.stringContaining('succeeded  3 of 3 partitions')])
})

test('a backfill that stopped after failures says how to make the rest', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  await project.dev()
  const stopped = await project.servo(
    ...['backfills', 'create', 'bad', '--filter', 'partition=*', '--stop-after-failures', '1', '--concurrency', '1', '--wait'],
  )
  const [bad = ''] = /^bf_[0-9a-z]{26}/.exec(stopped.stdout) ?? []
  expect(stopped.stdout).toContain(`${bad}  failed  1 of 4 partitions, 1 failed`)
  expect((await project.asked('why', 'backfill', bad)).stdout).toContain(
    `3 partitions were not made; make what does not exist: servo backfills create bad --filter 'partition=*' --skip-existing`,
  )
})

test('without a server a backfill is recorded by the code as it is, and --wait is refused before anything is recorded', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const waiting = await project.servo('backfills', 'create', 'slow', '--all', '--wait')
  expect([waiting.code, waiting.stderr]).toEqual([3, expect.stringContaining('no server is running, and --wait needs one')])
  expect((await project.servo('run', 'raw', '--partition', '2025-01-01')).code).toBe(0)
  project.write(
    'assets/new.ts',
    `import { asset, keys } from 'servo-flow'\nexport const fresh = asset('fresh', { partitions: keys(['a']), run: () => 1 })\n`,
  )
  const recorded = await project.servo('backfills', 'create', 'fresh', '--all')
  expect([recorded.code, recorded.stderr]).toEqual([
    0,
    expect.stringContaining('no server is running; it begins when one is started'),
  ])
  const [id = ''] = /^bf_[0-9a-z]{26}/.exec(recorded.stdout) ?? []
  const { backfills } = (await project.json('backfills', 'list')) as { backfills: Made[] }
  expect(backfills).toMatchObject([{ backfill_id: id, state: 'PENDING' }])
  expect((await project.asked('why', 'backfill', id)).stderr).toContain('schedules, sensors, runs and backfills wait for one')
  const retry = await project.servo('backfills', 'retry-failed', id, '--wait')
  expect([retry.code, retry.stderr]).toEqual([3, expect.stringContaining('--wait needs one')])
  project.write('assets/new.ts', 'export const broken = (')
  const broken = await project.servo('backfills', 'create', 'fresh', '--all')
  expect([broken.code, broken.stderr]).toEqual([2, expect.stringContaining('the project cannot be loaded')])
  project.write(
    'assets/new.ts',
    `import { asset, keys } from 'servo-flow'\nexport const fresh = asset('fresh', { partitions: keys(['a']), run: () => 1 })\n`,
  )
  const dev = await project.dev()
  await dev.says(new RegExp(`${id} {2}succeeded {2}1 of 1 partition`))
})

test('a project that never ran takes a backfill without a server', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const recorded = await project.servo('backfills', 'create', 'raw', '--partitions', '2025-01-01')
  expect([recorded.code, recorded.stdout], recorded.stderr).toEqual([
    0,
    expect.stringMatching(/^bf_\w{26} {2}1 partition in 1 run\n$/),
  ])
})

test('Ctrl-C leaves a backfill to the server and says so; when the server goes away, --wait ends with 3', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const dev = await project.dev()
  const waiting = project.begin(['backfills', 'create', 'slow', '--all', '--key', 'k', '--wait'])
  const [id] = await waiting.says(/^bf_[0-9a-z]{26}/)
  waiting.kill('SIGINT')
  const left = await waiting.ended
  expect([left.code, left.stdout]).toEqual([
    130,
    expect.stringContaining(`${id} continues on the server; cancel it with: servo backfills cancel ${id}\n`),
  ])
  const again = project.begin(['backfills', 'create', 'slow', '--all', '--key', 'k', '--wait'])
  await again.says(/created before/)
  await until(async () => (await project.json('backfills', 'list', '--status', 'running')).backfills.length === 1, 'it runs')
  const listed = await project.asked('backfills', 'list')
  expect(listed.stdout).toContain(id)
  dev.kill('SIGKILL')
  await dev.ended
  const gone = await again.ended
  expect([gone.code, gone.stderr]).toEqual([
    3,
    expect.stringContaining(`error: ${id} is running, and no server is running to continue it\n`),
  ])
})
