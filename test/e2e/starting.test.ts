import fs from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf, type TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

/** Loads at once, or for as long as there is a file `slow`; the file `loading` tells that it has begun. */
const SLOW_TO_LOAD = `import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

if (existsSync('slow')) {
  writeFileSync('loading', '')
  while (existsSync('slow')) await sleep(20)
}
export const made = asset('made', { run: () => 1 })
export const quick = asset('quick', { run: () => 1 })
export const hold = asset('hold', {
  async run({ signal }) {
    while (!existsSync('go')) await sleep(50, undefined, { signal })
  },
})
`

/** A project in which something was made and something runs; its server was killed, and the next one is loading it. */
async function starting(): Promise<{ project: TestProject; dev: Servo; runId: string }> {
  const project = projectOf({ 'assets/slow.ts': SLOW_TO_LOAD })
  const before = await project.dev()
  const made = await project.request('made')
  await until(async () => (await project.shown(made)).run['state'] === 'SUCCEEDED', 'what was made')
  const runId = await project.request('hold')
  await before.says(/ running +hold\n/)
  before.kill('SIGKILL')
  await before.ended
  project.write('slow')
  const dev = project.begin(['dev', '--port', '0'])
  await until(() => fs.existsSync(project.file('loading')), 'the project to be loading')
  return { project, dev, runId }
}

test('while a server starts, commands wait for it, say so, and what they acknowledge is what it shows', async () => {
  const { project, dev, runId } = await starting()
  const commands = [
    project.begin(['partitions', 'wipe', 'made', '--yes']),
    project.begin(['runs', 'cancel', runId]),
    project.begin(['run', 'quick', '--key', 'early', '--detach']),
  ]
  const waiting = new RegExp(`waiting for the server that is starting \\(process ${dev.pid}\\)`)
  for (const command of commands) await command.says(waiting)
  project.remove('slow')
  const ended = await Promise.all(commands.map((command) => command.ended))
  for (const { stderr, code } of ended) {
    expect(stderr).toMatch(waiting)
    expect(code).toBe(0)
  }
  await dev.says(/ready in/)
  const client = project.clientOf(dev)
  await until(async () => (await client.runs.get(runId)).run['finished_at'] !== null, 'the run to end')
  expect((await client.runs.get(runId)).run['state']).toBe('CANCELLED')
  const { partitions } = await client.statuses.list({ select: 'made', order: 'newest', limit: 10 })
  expect(partitions).toMatchObject([{ asset_key: 'made', status: 'NEVER_MATERIALIZED' }])
  const [, early = ''] = /accepted {2}(run_\w{26})\n/.exec((ended[2] as { stdout: string }).stdout) ?? []
  await until(async () => (await client.runs.get(early)).run['state'] === 'SUCCEEDED', 'the early run to succeed')
})

test('a second server is refused at once while the first one starts, and once it runs', async () => {
  const { project, dev } = await starting()
  const early = await project.servo('dev')
  expect(dev.shown).toBe('')
  expect(early.stderr).toMatch(new RegExp(`^error: this project is already running: process ${dev.pid}`))
  expect(early.code).toBe(2)
  project.remove('slow')
  await dev.says(/ready in/)
  const late = await project.servo('dev')
  expect(late.stderr).toContain(`error: this project is already running: process ${dev.pid} at ${dev.url}\n`)
  expect(late.code).toBe(2)
})

test('a start removes what processes that were killed long ago left half-written, and nothing newer', async () => {
  const project = projectOf({ 'assets/slow.ts': SLOW_TO_LOAD })
  const folders = ['.servo', '.servo/tenant=default/workspace=default', '.servo/tenant=default/workspace=default/lease']
  const left = (name: string): string[] => folders.filter((folder) => fs.existsSync(project.file(`${folder}/.tmp/${name}`)))
  const longAgo = Date.now() / 1_000 - 24 * 3_600
  for (const folder of folders) {
    for (const name of ['old', 'new']) project.write(`${folder}/.tmp/${name}`, 'half a fi')
    fs.utimesSync(project.file(`${folder}/.tmp/old`), longAgo, longAgo)
  }
  await project.dev()
  await until(() => left('old').length === 0, 'the old files to be gone')
  expect(left('new')).toEqual(folders)
})
