import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { localComponents } from '../../src/server/components.ts'
import { projectOf } from './support/project.ts'
import { beginnings, ends, manifestsOf, TRACED } from './support/traced.ts'
import { until } from './support/until.ts'

const TASKS = 8

/** One after the other, a second each. */
const CHAIN = `${TRACED}
const made = []
for (let i = 0; i < ${TASKS}; i++) made.push(traced('t/' + i, 1_000, made.slice(-1)))
export const all = made
`

test('servo dev takes over from a servo run that leads, which follows its run there until it ends', async () => {
  const project = projectOf({ 'assets/chain.ts': CHAIN })
  const run = project.begin(['run', '*'])
  await until(() => beginnings(project).length > 0, 'the first task')
  const dev = await project.dev()
  expect(ends(project).length, 'it did not wait for the end of the run').toBeLessThan(TASKS)
  const { code, stdout } = await run.ended
  expect(stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}8 tasks/)
  expect(code).toBe(0)
  expect(dev.isOver).toBe(false)
  // Each ran to its end once, the first where it was begun and the last at the new server.
  const keys = Array.from({ length: TASKS }, (_, i) => `t/${i}`)
  expect(ends(project).map(({ key }) => key)).toEqual(keys)
  expect(ends(project).at(0)?.leader).toBe(run.pid)
  expect(ends(project).at(-1)?.leader).toBe(dev.pid)
  expect(await project.json('runs', 'list')).toMatchObject([{ state: 'SUCCEEDED', tasks_succeeded: TASKS }])
})

const LEASE = { SERVO_LEASE_MS: '1000' }

test('[E7] a servo rebuild that was stopped until servo dev took over writes nothing, says so, and the server goes on', async () => {
  const project = projectOf({
    'assets/one.ts': "import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => 1 })\n",
  })
  expect(await project.servo('run', 'one')).toMatchObject({ code: 0 })
  // The rebuild looks at the copy of the manifest before it first writes, and waits for as long as nobody opens the other end.
  const [copy = ''] = fs.globSync('.servo/*/*/manifests/orchestration.manifest.json', { cwd: project.dir })
  project.remove(copy)
  execFileSync('mkfifo', [project.file(copy)])
  fs.linkSync(project.file(copy), project.file('pipe'))
  const rebuild = project.begin(['rebuild', '.servo'], LEASE)
  const { lease } = localComponents(project.file('.servo'))
  await until(async () => (await lease.leader())?.pid === rebuild.pid, 'the rebuild to claim the lease')
  // A holder removes the claims before its own once it knows that it leads; stopped earlier it would not be deposed but late.
  const claims = (): string[] => fs.globSync('.servo/*/*/lease/[0-9]*[0-9].json', { cwd: project.dir })
  await until(() => claims().length === 1, 'the rebuild to lead')
  rebuild.kill('SIGSTOP')

  const dev = await project.devIn(LEASE)
  const { run_id } = await project.json('run', 'one', '--detach')
  rebuild.kill('SIGCONT')
  const pipe = fs.openSync(project.file('pipe'), fs.constants.O_RDWR)
  const { code, stdout, stderr } = await rebuild.ended
  fs.closeSync(pipe)
  expect(stderr).toMatch(/^error: another process leads this project now.*\nhint: .*again/)
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' })
  const client = project.clientOf(dev)
  await until(async () => (await client.runs.get(run_id)).run['state'] === 'SUCCEEDED', 'the run to succeed')
  dev.kill('SIGINT')
  expect((await dev.ended).code).toBe(0)
  expect(new Set(manifestsOf(project).map(({ compactor }) => compactor))).not.toContain('servo rebuild')
  expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
})
