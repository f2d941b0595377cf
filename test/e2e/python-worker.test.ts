import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { localComponents } from '../../src/server/components.ts'
import { LocalServer } from '../../src/server/machine/local-server.ts'

const root = path.resolve(import.meta.dirname, '../..')
const projectDir = path.join(root, 'examples/python-worker')
const hasPython = spawnSync('python3', ['--version']).status === 0
if (!hasPython) console.warn('python3 is not here, so the worker in Python is not tried')

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

async function start(servoDir: string, port = 0): Promise<LocalServer> {
  const components = localComponents(servoDir)
  const instance = components.ulid()
  const lease = await components.lease.claim({ name: instance, term: 'standing' })
  if (!lease.held) throw new Error('somebody else leads')
  const { server, loaded } = await LocalServer.start({ projectDir, components, lease, instance, port, concurrency: 1 })
  endings.push(() => server.close())
  expect(loaded).toMatchObject({ ok: true })
  return server
}

function newFolder(): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-python-'))
  endings.push(() => fs.rmSync(folder, { recursive: true, force: true }))
  return folder
}

const tokenOf = async (servoDir: string): Promise<string> =>
  (await localComponents(servoDir).secrets.read())?.api_token as string

async function python(server: LocalServer, servoDir: string): Promise<ChildProcess> {
  const env = { ...process.env, SERVO_URL: server.url, SERVO_TOKEN: await tokenOf(servoDir) }
  const child = spawn('python3', [path.join(projectDir, 'worker.py')], { env, stdio: ['ignore', 'inherit', 'inherit'] })
  endings.push(() => child.kill('SIGKILL'))
  return child
}

/** The run when it is over, or as far as `enough` says. */
async function until(
  server: LocalServer,
  runId: string,
  enough: (run: Detail) => boolean = ({ run }) => run['finished_at'] != null,
) {
  for (;;) {
    const detail = await server.api.runs.get(runId)
    if (enough(detail)) return detail
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
type Detail = Awaited<ReturnType<LocalServer['api']['runs']['get']>>

test.runIf(hasPython)(
  'a worker in Python asks for work, stays alive through a restart of the server, and reports',
  async () => {
    const servoDir = newFolder()
    const first = await start(servoDir)
    const beats = vi.spyOn(first.orchestrator.remote, 'heartbeat')
    await python(first, servoDir)
    const { run_id } = await first.api.runs.request({ select: ['*'], labels: { seconds: '3' } }, 'tester')
    await until(first, run_id, ({ tasks }) => tasks.some((task) => task['state'] === 'RUNNING'))
    await vi.waitFor(() => expect(beats).toHaveBeenCalled())
    const port = Number(new URL(first.url ?? '').port)
    await first.close()

    const second = await start(servoDir, port)
    const { run, tasks, attempts } = await until(second, run_id)
    expect(run).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: 2 })
    expect(tasks.map((task) => [task['task_key'], task['state']])).toEqual([
      ['ranking', 'SUCCEEDED'],
      ['scores', 'SUCCEEDED'],
    ])
    const made = attempts.filter((attempt) => attempt['task_key'] === 'scores')
    expect(made, 'the restart cost no attempt').toMatchObject([{ attempt: 1, outcome: 'SUCCEEDED', output: { rows: 3 } }])
  },
)

test('a result that is said again after its run became history is accepted, another one is not', async () => {
  const servoDir = newFolder()
  const first = await start(servoDir)
  const { run_id } = await first.api.runs.request({ select: ['scores'] }, 'tester')
  const claim = { worker_id: 'fetch', capacity: 1, wait_ms: 10_000 }
  const { dispatches } = await post(first, '/workers/claim', await tokenOf(servoDir), claim)
  const [work] = dispatches as { task_id: string; task_token: string }[]
  const done = `/tasks/${work?.task_id}/completed`
  const result = {
    outcome: 'SUCCEEDED',
    materialization_id: 'm1',
    output: { rows: 3, metadata: { b: 1.5, a: 'x' } },
    metrics: { s: 0.25 },
  }
  expect(await post(first, done, work?.task_token, result)).toEqual({ status: 200, accepted: true })
  await until(first, run_id)
  await first.close()

  const second = await start(servoDir)
  await second.orchestrator.loop.compactor.publish({ kind: 'base' })
  expect(second.orchestrator.loop.compactor.state.hot(runs).get(run_id), 'the run is history').toBeUndefined()
  expect(await post(second, done, work?.task_token, result)).toEqual({ status: 200, accepted: true })
  expect(await post(second, done, work?.task_token, { ...result, materialization_id: 'm2' })).toMatchObject({
    status: 409,
    should_cancel: true,
  })
})

test('docs/workers.md shows the worker as it is', () => {
  const script = fs.readFileSync(path.join(projectDir, 'worker.py'), 'utf8')
  expect(fs.readFileSync(path.join(root, 'docs/workers.md'), 'utf8')).toContain(script)
})

async function post(server: LocalServer, to: string, token: string | undefined, body: object) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const url = `${server.url}/api/v1/orchestration${to}`
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = (await response.json()) as Record<string, unknown>
  return { ...answer, status: response.status } as Record<string, unknown>
}
