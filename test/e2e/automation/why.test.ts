import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'

const SHOP = `import { asset, schedule } from 'servo-flow'
export const orders = asset('raw/orders', { run: () => [{ id: 1 }] })
export const revenue = asset('mart/revenue', { deps: [orders], run: () => { throw new Error('no such column\\u001b[2J') } })
export const often = schedule('often', { cron: '* * * * * *', select: orders })
`
const RUN = /run_[a-z2-7]{26}/g

test('[A61][A63][A64][A65] servo why and servo conflicts answer with a server and without one, in words and as JSON', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  const dev = await project.dev()
  await dev.says(/often {2}triggered {2}tick of/)
  await project.servo('schedules', 'pause', 'often', '--reason', 'enough')
  await dev.says(/often {2}skipped {2}tick of/)
  const said = async (...args: string[]): Promise<string> => (await project.servo(...args)).stdout
  const paused = await said('why', 'schedule', 'often')
  expect(paused).toMatch(/^often did not run at \d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? \(UTC\): paused by \w+ at [\d: -]+: enough\n/)
  await project.servo('run', 'mart/revenue', '--key', 'k')
  expect((await project.servo('run', 'raw/orders', '--key', 'k')).code).toBe(2)
  const asset = await said('why', 'asset', 'raw/orders')
  expect(asset).toMatch(
    /^raw\/orders ran because the schedule often ticked at [\d: -]+\n {2}last materialized at [\d: -]+ by run_/,
  )
  dev.kill('SIGTERM')
  await dev.ended

  // What was answered from memory is answered from files.
  const made = (text: string): string[] => text.split('\n').slice(0, 3)
  expect(made(await said('why', 'asset', 'raw/orders'))).toEqual(made(asset))
  const still = await said('why', 'schedule', 'often')
  expect(still.split('\n')[0]).toMatch(/paused by \w+ at [\d: -]+: enough$/)
  expect(still).toContain('resume it: servo schedules resume often')
  const [run] = (await project.json('runs', 'list', '--limit', '1')) as { run_id: string }[]
  const answered = async (...args: string[]): Promise<string> => (await project.asked(...args)).stdout
  const failed = await answered('why', 'run', run?.run_id ?? '')
  expect(failed).toMatch(/ failed: mart\/revenue failed at .*: no such column\\u001b\[2J\n {2}because \w+ requested it at /)
  const answer = (await project.json('why', 'run', run?.run_id ?? '')) as { verdict: string; because: { code: string }[] }
  expect([answer.verdict, answer.because.map(({ code }) => code)]).toEqual([
    'failed',
    ['task_failed', 'asked_by_user', 'selects'],
  ])
  expect((await answered('conflicts')).replace(RUN, 'run_…')).toMatch(
    /key k {2}user:k\n {2}first {2}\w+ requested it at [\d: -]+: mart\/revenue, as run_…\n {2}then {3}\w+ requested it at [\d: -]+: raw\/orders\n/,
  )
  expect(await project.json('conflicts')).toMatchObject({ conflicts: [{ kind: 'run_key', run_key: 'user:k' }] })
  const unknown = await project.asked('why', 'schedule', 'oftn')
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('Did you mean often?')])
})

test('[A64] servo why asset names the schedule of a project that no server has loaded yet', async () => {
  const project = projectOf({ 'assets/a.ts': SHOP })
  expect((await project.servo('run', 'raw/orders')).code).toBe(0)
  const { stdout, stderr } = await project.asked('why', 'asset', 'raw/orders')
  expect(stdout + stderr).toMatch(/the schedule often may run it, but is not on record yet; servo dev records it/)
})
