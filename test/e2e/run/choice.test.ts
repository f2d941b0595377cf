import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { shell } from '../support/servo.ts'

const ASSETS = `import { existsSync, readFileSync } from 'node:fs'
import { asset, daily, dynamic, keys, multi, source } from 'servo-flow'
import { z } from 'zod'

export const quick = asset('quick', { run: () => 1 })
const days = daily({ start: '2025-01-01', end: '2025-01-13' })
export const raw = asset('raw', { partitions: days, run: ({ partition }) => partition.key })
export const total = asset('total', { inputs: { raw: raw.all() }, run: ({ raw }) => raw.size })
export const report = asset('report', { inputs: { total }, run: ({ total }) => total })
export const flaky = asset('flaky', { run() { if (!existsSync('repaired')) throw new Error('not repaired') } })
export const feed = source('feed', { schema: z.object({ n: z.number() }), uri: 'feed.csv' })

const regions = dynamic('regions')
export const lists = asset('lists', {
  run({ partitions }) { partitions(regions).add(readFileSync('regions', 'utf8').trim().split(' ')) },
})
export const per = asset('per', { partitions: regions, deps: [lists], run: ({ partition }) => partition.key })
export const cube = asset('cube', { partitions: multi({ day: days, region: keys(['eu', 'us']) }), run: () => 1 })
export const fixed = asset('fixed', { partitions: keys(['a', 'b']), run: () => 1 })
`

test('[T15][T16] servo run refuses what cannot succeed, and never drops what was selected in silence', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS, regions: 'eu us' })
  // Nothing has run here: a dry run needs neither a server nor state, and leaves none.
  const first = await project.servo('run', 'report', '--missing', '--dry-run')
  expect(first.stderr).toContain('report needs total, which was never materialized')
  const whole = await project.servo('run', 'quick', 'raw', '--missing', '--dry-run')
  expect(whole.stdout).toMatch(/^would run 13 tasks; nothing is recorded\n/)
  expect(whole.stdout).toMatch(/\n {2}raw\[2025-01-01\.\.2025-01-12\] +12 tasks +never materialized\n/)
  expect(whole).toMatchObject({ code: 0, stderr: '' })
  expect(existsSync(project.file('.servo/tenant=default/workspace=default/ledger'))).toBe(false)

  project.write('assets/broken.ts', 'export const x = (\n')
  expect(await project.servo('run', 'quick', '--dry-run')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^error: the project cannot be loaded: assets\/broken\.ts:\d/),
  })
  project.remove('assets/broken.ts')

  await project.dev()
  const refused = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await project.servo('run', ...args)
    expect({ code, stdout }, args.join(' ')).toEqual({ code: 2, stdout: '' })
    return stderr
  }
  expect(await refused()).toMatch(/^error: no assets selected\nhint: .*servo run --stale/)
  expect(await refused('quick', '--partition', 'eu')).toMatch(
    /^error: the request names the partition eu, but quick has no partitions\n/,
  )
  expect(await refused('per', '--partition', '*')).toContain('regions has no keys yet; add some: servo partitions add regions')
  expect(await refused('fixed', '--partition', 'latest')).toMatch(
    /fixed: `latest` needs a time dimension, but these partitions have none/,
  )
  const missing = await refused('report', '--quiet')
  expect(missing).toMatch(/^error: report needs total, which was never materialized\nhint: /)
  expect(await refused('total')).toMatch(
    /^error: total needs raw\[2025-01-01\], raw\[2025-01-02\], raw\[2025-01-03\] and 9 more, which were never materialized\n/,
  )
  expect(await project.json('runs', 'list'), 'what is refused is not on record').toEqual([])

  // The hint is a command that works, however deep the missing inputs are.
  const [, command = ''] = /hint: Materialize it in the same run: (.*)\n/.exec(missing) ?? []
  expect(command).toBe("servo run 'raw[2025-01-01..2025-01-12]' total report")
  expect(await shell(`${command} --quiet`, project.dir)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/\nsucceeded {2}run_\w{8} {2}14 tasks/),
  })

  // A plan is made once: keys that the run itself adds are for the next one.
  const listed = await project.servo('run', 'feed', 'lists', 'per', '--partition', '*')
  expect(listed.stderr).toMatch(/^skipping feed: other programs materialize this source\nskipping per: regions has no keys yet/)
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(' 1 task') })
  project.write('regions', 'eu us asia')
  const again = await project.json('run', 'lists', 'per', '--partition', '*')
  expect(again).toMatchObject({ state: 'SUCCEEDED', tasks_total: 3 })
  expect((await project.servo('run', 'per', '--missing')).stdout).toMatch(/^run_\w{8} {2}1 task\n.* per\[asia\]\n/)
  expect((await project.servo('run', 'raw', '--partition', 'latest')).stdout).toContain(' raw[2025-01-12]\n')
  const cube = await project.servo('run', 'cube', '--partition', 'latest', '--dry-run')
  expect(cube.stdout).toMatch(/cube\[day=2025-01-12,region=eu\], cube\[day=2025-01-12,region=us\] +2 tasks/)
})

test('[T17] servo run --stale, --missing and --failed run what needs it, alone or of a selection; when nothing does, they say so', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS, regions: 'eu' })
  await project.dev()
  const planned = async (...args: string[]): Promise<unknown[]> =>
    (await project.json('run', ...args, '--dry-run')).tasks.map(
      ({ task_key, reasons }: { task_key: string; reasons: string[] }) => [task_key, ...reasons].join(' '),
    )
  expect(await planned('fixed', 'quick', '--missing')).toEqual([
    'fixed[a] never_materialized',
    'fixed[b] never_materialized',
    'quick never_materialized',
  ])
  expect(await project.json('run', 'fixed', 'quick', '--missing')).toMatchObject({ tasks_total: 3, state: 'SUCCEEDED' })
  expect(await planned('quick'), 'what is fresh runs because it was selected').toEqual(['quick'])
  const nothing = await project.servo('run', 'fixed', 'quick', '--stale')
  expect(nothing).toEqual({ code: 0, stdout: 'nothing to do: nothing selected is stale\n', stderr: '' })
  expect(await project.json('run', '--failed')).toMatchObject({
    run_id: null,
    nothing_to_do: expect.stringContaining('selected failed'),
  })

  await project.servo('partitions', 'wipe', 'fixed', '--partition', 'b', '--yes')
  expect(await planned('fixed', 'quick', '--stale')).toEqual(['fixed[b] never_materialized'])
  // The same request is the same run, although nothing is stale any more when it comes again.
  const keyed = await project.json('run', 'fixed', '--stale', '--key', 'repair')
  expect(keyed).toMatchObject({ tasks_total: 1, asset_selection: ['fixed[b]'] })
  expect(await project.json('run', 'fixed', '--stale', '--key', 'repair', '--detach')).toMatchObject({
    run_id: keyed.run_id,
    created: false,
  })

  expect((await project.servo('run', 'flaky', 'quick')).code).toBe(1)
  expect(await planned('--failed')).toEqual(['flaky never_materialized last_attempt_failed'])
  project.write('repaired')
  expect(await project.json('run', '--failed')).toMatchObject({ tasks_total: 1, state: 'SUCCEEDED' })
  expect((await project.servo('run', '--failed')).stdout).toMatch(/^nothing to do: nothing selected has failed\n$/)
})
