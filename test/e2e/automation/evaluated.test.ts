import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { projectOf, type TestProject } from '../support/project.ts'
import type { Servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

const AUTOMATION = `import { existsSync, readFileSync } from 'node:fs'
import { asset, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
const event = z.object({ order: z.number() })
export const orders = asset('orders', { run: () => 1 })
export const report = asset('report', { run: () => 1 })
export const broken = asset('broken', { run: () => { throw new Error('no rows') } })
export const shop = sensor.push('shop', {
  source: webhook({ path: 'shop', verify: 'standard', secret: ['NEW_SECRET', 'OLD_SECRET'], schema: event }),
  on: ({ order }) => run(orders, { key: String(order) }),
})
export const flaky = sensor.push('flaky', {
  source: webhook({ path: 'flaky', verify: 'none', schema: event }),
  maxTries: 2,
  on: () => {
    if (!existsSync('mended')) throw new Error('the shop is closed')
    return run(report)
  },
})
export const hanging = sensor.push('hanging', {
  source: webhook({ path: 'hanging', verify: 'none', schema: event }),
  timeout: '2s',
  on: () => { for (;;); },
})
export const files = sensor.poll('files', {
  every: '1s',
  cursor: z.number(),
  poll: ({ cursor = 0 }) => {
    const count = existsSync('files') ? Number(readFileSync('files', 'utf8')) : 0
    return { cursor: count, runs: Array.from({ length: count - cursor }, () => run(report)) }
  },
})
export const onOrders = sensor.asset('on-orders', { watch: [orders], on: () => run(report) })
export const onFailure = sensor.run('on-failure', { states: ['FAILED'], on: () => run(report) })
export const often = schedule('often', {
  cron: '* * * * * *',
  select: orders,
  when: () => existsSync('open') || { run: false, reason: 'the shop is closed' },
})
`
const SECRETS = { NEW_SECRET: 'whsec_bmV3LXNlY3JldC1uZXctc2VjcmV0', OLD_SECRET: 'whsec_b2xkLXNlY3JldC1vbGQtc2VjcmV0' }

function signed(id: string, body: string, secret: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}

async function post(dev: Servo, path: string, order: unknown, headers: (body: string) => Record<string, string>) {
  const body = JSON.stringify({ order })
  return await fetch(`${dev.url}/hooks/default/default/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers(body) },
    body,
  })
}

const start = (project: TestProject): Promise<Servo> => project.devIn(SECRETS)

test('[A23][A40][A46] the same webhook 100 times at once, and again after a restart and a kill, is one run and 2xx each time', async () => {
  const project = projectOf({ 'assets/a.ts': AUTOMATION })
  let dev = await start(project)
  const hundred = async (secret: string): Promise<Set<number>> => {
    const answers = Array.from({ length: 100 }, () => post(dev, 'shop', 7, (body) => signed('m7', body, secret)))
    return new Set((await Promise.all(answers)).map(({ status }) => status))
  }
  expect(await hundred(SECRETS.NEW_SECRET)).toEqual(new Set([200]))
  dev.kill('SIGINT')
  await dev.ended
  dev = await start(project)
  expect(await hundred(SECRETS.OLD_SECRET)).toEqual(new Set([200]))
  dev.kill('SIGKILL')
  await dev.ended
  dev = await start(project)
  expect(await hundred(SECRETS.NEW_SECRET)).toEqual(new Set([200]))
  expect((await post(dev, 'shop', 7, (body) => signed('m8', body, 'whsec_Zm9yZ2Vk'))).status).toBe(401)
  const [shop] = (await project.json('sensors', 'evals', 'shop')).evals
  expect(shop).toMatchObject({ status: 'triggered', accepted: true, message_id: 'm7' })
  expect((await project.json('sensors', 'evals', 'shop')).evals).toHaveLength(1)
  const runs = async () =>
    (await (await project.client()).runs.list({ limit: 100 })).filter(({ run_key }) => run_key.endsWith(':key:7'))
  await until(async () => (await runs()).some(({ state }) => state === 'SUCCEEDED'), 'the run')
  expect(await runs()).toHaveLength(1)
  const { stdout } = await project.servo('why', 'sensor', 'shop', '--message', 'm7')
  expect(stdout).toContain('m7')
})

test('[A22][A36][A44][A60][A66] polls, happenings, conditions and dead letters work in the process that people run', async () => {
  const project = projectOf({ 'assets/a.ts': AUTOMATION, files: '2' })
  const dev = await start(project)
  const evals = async (sensor: string) => (await project.json('sensors', 'evals', sensor)).evals

  await dev.says(/files {2}triggered {2}poll/)
  await dev.says(/often {2}skipped .*: the shop is closed/)
  project.write('open')
  await dev.says(/often {2}triggered/)
  await dev.says(/on-orders {2}triggered {2}message materialized:/)
  project.remove('open')

  // A sensor that never yields holds up nobody but its own sender.
  const hanging = post(dev, 'hanging', 1, () => ({ 'x-message-id': 'h1' }))
  expect((await post(dev, 'shop', 1, (body) => signed('s1', body, SECRETS.NEW_SECRET))).status).toBe(200)
  const timedOut = await hanging
  expect([timedOut.status, await timedOut.json()]).toMatchObject([500, { code: 'sensor_failed', try: 1 }])
  expect((await evals('hanging'))[0]).toMatchObject({
    status: 'error',
    error: expect.stringContaining('longer than its timeout'),
  })

  const unfit = await post(dev, 'shop', 'seven', (body) => signed('s2', body, SECRETS.NEW_SECRET))
  expect([unfit.status, await unfit.json()]).toMatchObject([422, { code: 'unfit_message', field: 'order', try: 1 }])
  expect((await project.servo('why', 'sensor', 'shop', '--message', 's2')).stdout).toMatch(
    /: order does not match the schema: /,
  )

  expect((await (await project.client()).sensors.get('shop')).status, 'one message does not fit').toBe('active')

  const flaky = async () => (await post(dev, 'flaky', 1, () => ({ 'x-message-id': 'f1' }))).status
  expect([await flaky(), await flaky(), await flaky()]).toEqual([500, 200, 200])
  expect((await project.servo('sensors', 'dead-letters', 'flaky')).stdout).toMatch(/f1.*the shop is closed/)
  project.write('mended')
  expect(await project.servo('sensors', 'replay', 'flaky', 'f1', '--data', '{"order":1}')).toMatchObject({ code: 0 })
  expect((await project.json('sensors', 'dead-letters', 'flaky')).dead_letters).toEqual([])
  const dry = await project.servo('sensors', 'send', 'flaky', '--data', '{"order":2}', '--dry-run')
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('report') })
  const used = await project.servo('sensors', 'send', 'flaky', '--id', 'f1', '--data', '{"order":9}')
  expect(used).toMatchObject({
    code: 2,
    stdout: expect.stringContaining('a message with this id and other data was accepted before'),
  })
  expect((await evals('flaky')).filter(({ accepted }: { accepted: boolean }) => accepted)).toHaveLength(1)

  expect((await project.servo('run', 'broken')).code).toBe(1)
  await dev.says(/on-failure {2}triggered {2}message run:/)
  const why = await project.servo('why', 'asset', 'report')
  expect(why.stdout).toMatch(/report ran because sensor (on-failure|on-orders|files|flaky) requested it at/)
})
