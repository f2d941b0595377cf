import fs from 'node:fs'
import { describe, expect, test } from 'vitest'
import { descendants, isAlive } from '../support/processes.ts'
import { projectOf, type TestProject } from '../support/project.ts'
import type { Servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

const TOKEN = 'canary-token/4f9a+7'
const SIGN = 'canary-sign-77d2'

/** Assets that end when there is a file `go`. The first notices that it is cancelled, and then ends too. */
const ASSETS = `import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const small = asset('small', { run: () => 1 })
export const long = asset('long', {
  async run({ signal }) {
    signal.addEventListener('abort', () => writeFileSync('aborted', ''))
    while (!existsSync('go')) {
      signal.throwIfAborted()
      await sleep(20)
    }
    return 1
  },
})
export const after = asset('after', { inputs: { long }, run: () => 2 })
export const bad = asset('bad', { run() { throw new Error('refused with ' + process.env.SHOP_API_TOKEN) } })
export const each = schedule('each', { cron: '* * * * * *', select: small })
export const hook = sensor.push('hook', {
  source: webhook({ path: 'shop', schema: z.object({}), secret: 'SHOP_SIGN', verify: 'token' }),
  on() { console.log('signed with ' + process.env.SHOP_SIGN); return { runs: [] } },
})
`

interface Line {
  readonly time: string
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

/** The whole lines that it has logged so far. */
const linesOf = (text: string): Line[] =>
  text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

async function start(project: TestProject, ...args: string[]): Promise<Servo> {
  const server = project.begin(['start', '--port', '0', ...args], { SHOP_API_TOKEN: TOKEN, SHOP_SIGN: SIGN })
  await server.says(/"message":"server ready"/)
  return server
}

/** Requests a run of the slow asset and the one behind it, and waits until the slow one runs. */
async function underWay(project: TestProject): Promise<string> {
  const runId = await project.request('long', 'after')
  await until(async () => (await project.shown(runId)).tasks.some(({ state }) => state === 'RUNNING'))
  return runId
}

const attemptsOf = async (project: TestProject, runId: string) =>
  (await project.shown(runId)).attempts
    .filter(({ task_key }) => task_key === 'long')
    .map(({ attempt, outcome }) => [attempt, outcome])

describe('servo start', () => {
  test('[H5] logs one JSON object a line to standard error, with time, level, message and fields, and without secrets', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = await start(project)
    const ready = linesOf(server.shown).find(({ message }) => message === 'server ready')
    expect(ready).toMatchObject({
      level: 'info',
      url: server.url,
      project: 'shop',
      assets: 4,
      automation: true,
      pid: server.pid,
    })
    const runId = await project.request('bad')
    const sent = await fetch(`${server.url}/hooks/default/default/shop`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SIGN}`, 'content-type': 'application/json' },
      body: '{}',
    })
    expect(sent.status).toBe(200)
    const has = (message: string, fields: object) => () =>
      linesOf(server.shown).some(
        (line) => line.message === message && Object.entries(fields).every(([key, value]) => line[key] === value),
      )
    await until(has('run requested', { run_id: runId, level: 'info', trigger_type: 'manual' }))
    await until(has('run finished', { run_id: runId, level: 'error', state: 'FAILED' }))
    await until(has('schedule ticked', { schedule: 'each', level: 'info', status: 'triggered' }))
    await until(has('sensor evaluated', { sensor: 'hook', level: 'info', status: 'no_new_data' }))
    await until(has('printed', { by: 'sensor hook', text: 'signed with [redacted SHOP_SIGN]' }))
    const failed = linesOf(server.shown).find(({ message }) => message === 'attempt failed')
    expect(failed).toMatchObject({
      level: 'warn',
      run_id: runId,
      task_key: 'bad',
      error: 'refused with [redacted SHOP_API_TOKEN]',
    })
    server.kill('SIGTERM')
    const { code, stdout, stderr } = await server.ended
    expect([code, stdout]).toEqual([0, ''])
    const lines = linesOf(stderr)
    expect(lines.at(-1)).toMatchObject({ level: 'info', message: 'server stopped', interrupted: 0 })
    for (const { time, level } of lines)
      expect([new Date(time).toISOString(), level]).toEqual([time, expect.stringMatching(/^(info|warn|error)$/)])
    expect(stderr).not.toContain('canary')
  })

  test('[H5] logs text if asked to, by a flag or by the environment', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = project.begin(['start', '--port', '0'], { SERVO_LOG_FORMAT: 'text', SHOP_SIGN: SIGN })
    await server.says(
      /^\d{4}-\d\d-\d\dT[\d:.]+Z info {2}server ready {2}url=http:\/\/127\.0\.0\.1:\d+ {2}project=shop {2}assets=4 /m,
    )
    server.kill('SIGINT')
    expect((await server.ended).code).toBe(0)
    const refused = await project.begin(['start'], { SERVO_LOG_FORMAT: 'xml' }).ended
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('SERVO_LOG_FORMAT cannot be "xml"')])
  })

  test('[H6] on SIGTERM it begins nothing more, lets a running attempt end, answers meanwhile, and ends with 0', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = await start(project, '--drain', '600')
    const runId = await underWay(project)
    const processes = [server.pid, ...descendants(server.pid)]
    server.kill('SIGTERM')
    await server.says(/"message":"draining"/)
    const ready = await fetch(`${server.url}/health/ready`)
    expect([ready.status, await ready.json()]).toMatchObject([503, { detail: 'this server is not ready: it is stopping' }])
    expect(
      (
        await fetch(`${server.url}/hooks/default/default/shop`, {
          method: 'POST',
          headers: { authorization: `Bearer ${SIGN}`, 'content-type': 'application/json' },
          body: '{}',
        })
      ).status,
    ).toBe(503)
    // It is recorded, and begins at the next start.
    const later = await project.request('small')
    project.write('go')
    const { code } = await server.ended
    expect(code).toBe(0)
    expect(processes.filter(isAlive)).toEqual([])
    // Read from the folder: no server runs.
    const { tasks } = await project.json('runs', 'show', runId)
    const states = tasks.map((task: { task_key: string; state: string }) => [task.task_key, task.state])
    expect(Object.fromEntries(states)).toEqual({ long: 'SUCCEEDED', after: 'READY' })
    await start(project, '--no-automation')
    for (const id of [runId, later]) await until(async () => (await project.shown(id)).run['state'] === 'SUCCEEDED')
    expect(await attemptsOf(project, runId)).toEqual([[1, 'SUCCEEDED']])
  })

  test('[H6] an attempt that goes on for longer than the drain is cancelled, and runs again at the next start', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = await start(project, '--drain', '1', '--no-automation')
    const runId = await underWay(project)
    server.kill('SIGTERM')
    const { code, stderr } = await server.ended
    expect(code).toBe(0)
    expect(linesOf(stderr).at(-1)).toMatchObject({ message: 'server stopped', interrupted: 1 })
    expect(fs.existsSync(project.file('aborted'))).toBe(true)
    project.write('go')
    await start(project)
    await until(async () => (await project.shown(runId)).run['state'] === 'SUCCEEDED')
    expect(await attemptsOf(project, runId)).toEqual([
      [1, 'FAILED'],
      [2, 'SUCCEEDED'],
    ])
  })

  test('[H6] a second SIGTERM ends it at once, and all its processes', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = await start(project, '--drain', '600')
    await underWay(project)
    const processes = [server.pid, ...descendants(server.pid)]
    server.kill('SIGTERM')
    await server.says(/"message":"draining"/)
    server.kill('SIGTERM')
    expect((await server.ended).code).toBe(143)
    await until(() => !processes.some(isAlive), 'the workers to notice')
  })

  test('[E3][W1] after a kill -9 the next start takes over at once, and the run ends', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const server = await start(project)
    const runId = await underWay(project)
    server.kill('SIGKILL')
    await server.ended
    project.write('go')
    await start(project)
    await until(async () => (await project.shown(runId)).run['state'] === 'SUCCEEDED')
    expect(await attemptsOf(project, runId)).toEqual([
      [1, 'FAILED'],
      [2, 'SUCCEEDED'],
    ])
  })

  test('a project that does not load ends it with 1, and the log says where the mistake is', async () => {
    const project = projectOf({ 'assets/x.ts': 'export const x = (\n' })
    const { code, stderr, stdout } = await project.begin(['start', '--port', '0']).ended
    expect([code, stdout]).toEqual([1, ''])
    expect(linesOf(stderr)).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringMatching(/^project not loaded: /), file: 'assets/x.ts' }),
    )
  })

  test('a port that is taken is refused instead of taking another', async () => {
    const [one, other] = [projectOf({ 'assets/all.ts': ASSETS }), projectOf({ 'assets/all.ts': ASSETS })]
    const { port } = new URL((await start(one)).url)
    const { code, stderr } = await other.begin(['start', '--port', port]).ended
    expect(code).toBe(2)
    expect(linesOf(stderr).at(-1)).toMatchObject({ level: 'error', code: 'port_taken', message: `port ${port} is in use` })
  })
})
