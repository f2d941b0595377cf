import { execFile, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { pythonWithSchemathesis } from '../../python.ts'
import { projectOf, type TestProject } from '../support/project.ts'
import { until } from '../support/until.ts'

const python = pythonWithSchemathesis('The API is not compared with its OpenAPI document by schemathesis')
const document = path.resolve(import.meta.dirname, '../../../docs/openapi.json')

/** How many requests are sent; some hundred by default. */
const asked = Number(process.env['SERVO_FUZZ'] ?? 0)
const OPERATIONS = 80

const ASSETS = `import { asset, daily, dynamic, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const raw = asset('raw', { run: () => 1 })
export const revenue = asset('mart/revenue', { deps: [raw], run: () => ({ total: 3 }) })
export const days = asset('days', { partitions: daily({ start: '2025-01-01', end: '2025-02-01' }), run: () => 2 })
export const customers = asset('customers', { partitions: dynamic('customers'), run: () => 1 })
export const bad = asset('bad', { retry: { attempts: 1 }, run: () => { throw new Error('no') } })
export const nightly = schedule('nightly', { cron: '0 5 * * *', select: raw })
export const hook = sensor.push('hook', { source: webhook({ path: 'hook', verify: 'none', schema: z.unknown() }), on: () => [] })
export const files = sensor.poll('files', { every: '1h', cursor: z.number(), poll: ({ cursor = 0 }) => ({ cursor, runs: [] }) })
`

/** All that a check may be told is an answer to a request that fits the document: what fits may still name nothing, or be too much. */
const configOf = (token: string) => `
[auth.openapi.token]
bearer = "${token}"
[auth.openapi.task_token]
bearer = "of no attempt"
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 304, 400, 401, 403, 404, 409, 413, 415, 422, 503, 504]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422, 503]
# \`GET /runs/preview\` asks for a run of this name, so these paths allow more than they have in the document.
[[operations]]
include-path-regex = "/(runs/preview|backfills/preview|schedules/catchup|assets/graph|partitions/(stale|summary))$"
checks.allow_header_conformance.enabled = false
checks.unsupported_method.enabled = false
`

/** Ids of what there is, so that more than refusals is seen. */
async function namesIn(project: TestProject): Promise<Record<string, string[]>> {
  const client = await project.client()
  await client.assets.changeKeys('customers', { add: ['acme', 'hooli'] })
  const ids = [await project.request('+mart/revenue'), await project.request('bad')]
  const made = await client.backfills.create({ select: ['days'], partitions: { type: 'all' }, chunk_size: 20 })
  const over = async (id: string) => (await client.runs.get(id)).run.finished_at !== null
  for (const id of ids) await until(() => over(id), `the end of ${id}`)
  const asset = ['raw', 'mart/revenue', 'days', 'customers']
  return {
    run_id: ids,
    backfill_id: [made.backfill_id ?? ''],
    schedule_id: ['nightly'],
    sensor_id: ['hook', 'files'],
    key: asset,
    asset_key: asset,
    set: ['customers'],
    ...{ tenant: ['default'], workspace: ['default'], path: ['hook'], sensor: ['hook'], name: ['nightly', 'raw'] },
    kind: ['schedule', 'sensor', 'backfill', 'run', 'asset'],
  }
}

async function fuzzed(project: TestProject, url: string, names: object): Promise<string> {
  project.write('schemathesis.toml', configOf(project.token))
  const phases = asked === 0 ? ['--phases', 'fuzzing', '-n', '1'] : ['-n', String(Math.ceil(asked / OPERATIONS))]
  const args = [
    ...['-m', 'schemathesis.cli', '--config-file', project.file('schemathesis.toml'), 'run', `${url}/api/v1/openapi.json`],
    ...['--checks', 'all', '--continue-on-failure', '--request-timeout', '60', '--no-shrink', '--warnings', 'off', ...phases],
  ]
  const env = {
    ...process.env,
    SERVO_FUZZ_NAMES: JSON.stringify(names),
    SCHEMATHESIS_HOOKS: 'fuzz_hooks',
    PYTHONPATH: project.dir,
    PYTHONDONTWRITEBYTECODE: '1',
  }
  fs.copyFileSync(path.join(import.meta.dirname, 'fuzz-hooks.py'), project.file('fuzz_hooks.py'))
  const child = spawn(python ?? '', args, { cwd: project.dir, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let shown = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (shown += text))
  const code = await new Promise((resolve) => child.on('close', resolve))
  return code === 0 ? (/\d+ generated.*/.exec(shown)?.[0] ?? shown) : `schemathesis ended with ${code}:\n${shown}`
}

const residentMb = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024)

test.skipIf(python === undefined)('[Q2] docs/openapi.json is valid by a validator that is not ours', async () => {
  const { stdout } = await promisify(execFile)(python ?? '', ['-m', 'openapi_spec_validator', document])
  expect(stdout).toContain('OK')
})

test.skipIf(python === undefined)(
  '[Q6] whatever is asked, as the document has it or not, the answer is one that the document has, and never an error of ours',
  { timeout: 3_600_000 },
  async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    const dev = await project.dev()
    const names = await namesIn(project)
    const before = residentMb(dev.pid)
    const result = await fuzzed(project, dev.url, names)
    console.info(
      `schemathesis: ${result.slice(0, 200)}; the server has ${before} MB before and ${residentMb(dev.pid)} MB after`,
    )
    expect(result).toMatch(/^\d+ generated/)
    expect(dev.shown).not.toContain('could not be answered')
    expect(dev.isOver).toBe(false)
  },
)
