import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

const CODE = `import { asset, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const orders = asset('orders', { run: () => 1 })
export const dies = asset('dies', { run: () => process.exit(7) })
export const often = schedule('often', { cron: '* * * * * *', select: orders, when: () => true })
const at = (path) => webhook({ path, verify: 'none', schema: z.unknown() })
export const hook = sensor.push('hook', { source: at('hook'), on: () => run(orders) })
export const exiter = sensor.push('exiter', { source: at('exiter'), on: () => process.exit(7) })
`

test('[A79] a project that cannot be loaded any more refuses what needs its code, says so everywhere, and goes on when it is mended', async () => {
  const project = projectOf({ 'assets/code.ts': CODE })
  const dev = await project.dev()
  // Tick lines name their runs.
  await dev.says(/often {2}triggered {2}tick of .*: run_\w+/)
  const post = (path: string, id: string) =>
    fetch(`${dev.url}/hooks/default/default/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': id },
      body: '{}',
      signal: AbortSignal.timeout(10_000),
    })
  project.write('assets/broken.ts', 'export const x = nonsense')
  await dev.says(/not loaded {2}correct it and save; the last version that loaded stays in use/)
  expect((await post('hook', 'm0')).status).toBe(200)
  expect((await post('exiter', 'e')).status).toBe(500)
  await until(async () => (await post('hook', 'm1')).status === 503, 'a refusal')
  const refused = await Promise.all([post('hook', 'm1'), post('hook', 'm2'), post('hook', 'm3')])
  expect(refused.map(({ status, headers }) => [status, headers.get('retry-after')])).toEqual(Array(3).fill([503, '60']))
  await dev.says(/sensors and schedule conditions are waiting: The project cannot be loaded: assets\/broken.ts:1/)

  const api = await project.client()
  const { outage } = await api.schedules.automation()
  expect(outage).toContain('nonsense is not defined')
  expect((await api.schedules.get('often')).status_reason).toContain('it waits until its code can be evaluated')
  expect((await api.sensors.get('hook')).status_reason).toContain('nonsense is not defined')
  expect((await project.servo('automation', 'status')).stdout).toContain('schedule conditions are waiting: The project cannot')
  await until(async () => {
    const { because } = await api.whys.why('schedule', 'often', {})
    return because[0]?.code === 'code_unavailable'
  }, 'the reason of a tick that waits')
  const { because } = await api.whys.why('sensor', 'hook', { message: 'm1' })
  expect(because.map(({ code }) => code)).toEqual(['message_unknown', 'code_unavailable'])
  // Attempts end, too, whatever becomes of their processes.
  for (let i = 0; i < 3; i++) await project.servo('run', 'dies')
  expect((await project.servo('run', 'orders')).code).not.toBe(0)

  const before = dev.shown.length
  project.remove('assets/broken.ts')
  project.write('assets/code.ts', `${CODE}\n`)
  await dev.says(/often {2}triggered/, before)
  expect((await post('hook', 'm1')).status).toBe(200)
  expect((await api.schedules.automation()).outage).toBeNull()
})

test('[A79] a project that was never loaded is refused, not taken for one without schedules and sensors', async () => {
  const project = projectOf({ 'servo.config.ts': 'export default nonsense' })
  const dev = project.begin(['dev', '--port', '0'])
  await dev.says(/ready in/)
  const questions = [
    ...['schedules list', 'schedules list --status paused', 'schedules show nightly', 'sensors list', 'sensors show inbox'],
    ...['assets list', 'assets graph', 'partitions status', 'partitions stale', 'why schedule nightly'],
    ...['backfills preview orders --all', 'backfills create orders --all', 'run orders'],
  ]
  for (const question of questions) {
    const { code, stdout, stderr } = await project.asked(...question.split(' '))
    expect.soft({ question, code, stdout }).toEqual({ question, code: 2, stdout: '' })
    expect.soft(stderr, question).toMatch(/cannot be loaded: .*nonsense.*\nhint: Correct that first\. servo check lists/)
  }
  dev.kill('SIGINT')
  await dev.ended
  for (const question of questions.slice(0, -1)) {
    const { code, stdout, stderr } = await project.asked(...question.split(' '), '--json')
    expect.soft({ question, code, stdout }).toEqual({ question, code: 2, stdout: '' })
    expect.soft(JSON.parse(stderr).error, question).toMatchObject({ code: 'not_loaded' })
  }
})
