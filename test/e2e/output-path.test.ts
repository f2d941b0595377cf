import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { localComponents } from '../../src/server/components.ts'
import { projectOf, type TestProject } from './support/project.ts'
import { until } from './support/until.ts'

const ASSETS = `import { sql, table } from 'servo-flow'
import { z } from 'zod'

export const local = table('local', { schema: z.object({ secret: z.string() }), run: () => [{ secret: 'of another' }] })
export const scores = table('scores', { schema: z.object({ secret: z.string() }), queue: 'remote', run: () => [] })
export const report = table('report', {
  schema: z.object({ secret: z.string() }),
  inputs: { scores },
  sql: ({ scores }) => sql\`select secret from \${scores}\`,
})
`

/** Calls the server as a remote worker does, with nothing but a token. */
async function post(project: TestProject, to: string, token: string, body: object) {
  const url = (await localComponents(project.file('.servo')).lease.leader())?.address
  const response = await fetch(`${url}/api/v1/orchestration${to}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function claim(project: TestProject): Promise<DispatchEnvelope> {
  const { token: api_token } = project
  const asked = { worker_id: 'w1', capacity: 1, wait_ms: 20_000 }
  const { body } = await post(project, '/workers/claim', api_token, asked)
  const [work] = body['dispatches'] as DispatchEnvelope[]
  expect(work?.asset_key).toBe('scores')
  return work as DispatchEnvelope
}

const filesBelow = (folder: string): string[] =>
  fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.parquet'))

test('[D7] a remote worker cannot make assets here read files that it did not write', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  await project.dev()
  const data = localComponents(project.file('.servo')).dataDir
  expect((await project.servo('run', 'local')).code).toBe(0)
  const [theirs = ''] = filesBelow(path.join(data, 'data/local'))
  fs.copyFileSync(path.join(data, 'data/local', theirs), project.file('outside.parquet'))

  const { run_id } = await project.json('run', 'scores', 'report', '--detach')
  const work = await claim(project)
  const say = (output: object, materialization_id = 'm1') =>
    post(project, `/tasks/${work.task_id}/completed`, work.task_token ?? '', {
      outcome: 'SUCCEEDED',
      materialization_id,
      output,
    })
  await post(project, `/tasks/${work.task_id}/started`, work.task_token ?? '', { worker_id: 'w1' })
  const folder = work.payload.output_folder ?? ''
  for (const name of [
    '../../../outside.parquet',
    project.file('outside.parquet'),
    `data/local/${theirs}`,
    `${folder}../../local/${theirs}`,
    `${folder}*.parquet`,
    `${folder}m1/x=1/y.parquet`,
    `${folder}m1.`,
  ])
    expect(await say({ path: name }), name).toMatchObject({ status: 400, body: { field: 'output.path' } })
  expect(await say({ rows: -1 })).toMatchObject({ status: 400, body: { field: 'output.rows' } })
  const before = await (await project.client()).runs.get(run_id)
  expect(before.tasks.map(({ state }) => state).sort()).toEqual(['BLOCKED', 'RUNNING'])

  // What it says is where it may write; what lies there leads out.
  fs.mkdirSync(path.join(data, folder), { recursive: true })
  fs.symlinkSync(project.file('outside.parquet'), path.join(data, `${folder}m1.parquet`))
  expect(await say({ path: `${folder}m1.parquet` })).toMatchObject({ status: 200 })
  await until(async () => (await (await project.client()).runs.get(run_id)).run['state'] === 'FAILED')
  const { tasks } = await project.json('runs', 'show', run_id)
  const failed = tasks.find((task: { task_key: string }) => task.task_key === 'report')
  expect(failed).toMatchObject({
    state: 'FAILED',
    attempt: 1,
    error_message: expect.stringContaining('outside the data folder'),
  })
})

test('a file that a remote worker wrote at the path it was given is read', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  await project.dev()
  const data = localComponents(project.file('.servo')).dataDir
  await project.servo('run', 'local')
  const [own = ''] = filesBelow(path.join(data, 'data/local'))
  const { run_id } = await project.json('run', 'scores', 'report', '--detach')
  const work = await claim(project)
  const name = `${work.payload.output_folder}7c2e.parquet`
  fs.mkdirSync(path.dirname(path.join(data, name)), { recursive: true })
  fs.copyFileSync(path.join(data, 'data/local', own), path.join(data, name))
  const result = { outcome: 'SUCCEEDED', materialization_id: '7c2e', output: { path: name, rows: 1 } }
  expect(await post(project, `/tasks/${work.task_id}/completed`, work.task_token ?? '', result)).toMatchObject({ status: 200 })
  await until(async () => (await (await project.client()).runs.get(run_id)).run['state'] === 'SUCCEEDED')
  const { attempts } = await project.json('runs', 'show', run_id)
  const made = attempts.find((attempt: { task_key: string }) => attempt.task_key === 'report')
  expect(made).toMatchObject({ outcome: 'SUCCEEDED', output: { rows: 1 } })
})
