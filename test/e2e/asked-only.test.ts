import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'
import { beginnings, ends, TRACED } from './support/traced.ts'
import { until } from './support/until.ts'

/** Assets that wait for a file, each for its own, and one that does not. */
const WAITING = `import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'
const waits = (key) => asset(key, {
  run: async () => {
    appendFileSync('begun', key + '\\n')
    while (!existsSync('go-' + key)) await sleep(20)
  },
})
export const long = waits('long')
export const other = waits('other')
export const quick = asset('quick', { run: () => 1 })
`

test('[E7] a servo run that leads begins nothing but what it was asked for, and says what waits for a server', async () => {
  const project = projectOf({ 'assets/a.ts': WAITING })
  const dev = await project.dev()
  const { run_id } = await project.json('run', 'long', '--detach')
  await until(() => existsSync(project.file('begun')), 'the long task')
  dev.kill('SIGKILL')
  await dev.ended

  const detached = await project.servo('run', 'quick', '--detach')
  expect(detached.stderr).toMatch(/^error: no server is running, and --detach needs one\nhint: .*leave --detach out/)
  expect(detached).toMatchObject({ code: 3, stdout: '' })
  const quick = await project.servo('run', 'quick')
  expect(quick).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nsucceeded {2}run_\w{8} {2}1 task/) })
  expect(quick.stderr).toContain(`${run_id.slice(0, 12)} is unfinished; start a server to continue: servo dev`)
  expect(readFileSync(project.file('begun'), 'utf8')).toBe('long\n')
  expect((await project.servo('runs', 'list')).stderr).toContain('no server is running')
  expect(await project.servo('runs', 'logs', '-f', run_id)).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no server is running to continue it'),
  })

  project.write('go-long')
  const next = await project.dev()
  await next.says(/succeeded.*1 task/)
  expect(readFileSync(project.file('begun'), 'utf8')).toBe('long\nlong\n')
  const [id] = /run_\w{8}/.exec(quick.stdout) ?? []
  expect(next.shown, 'what ended before it was started is no news').not.toContain(id)
})

test('[E7] a servo run that leads goes on with what another command asked of it, until Ctrl-C', async () => {
  const project = projectOf({ 'assets/a.ts': WAITING })
  const first = project.begin(['run', 'long'])
  await until(() => existsSync(project.file('begun')), 'the first task')
  const { run_id } = await project.json('run', 'other', '--detach')
  project.write('go-long')
  await first.says(new RegExp(`${run_id.slice(0, 12)} is still running here for another command; Ctrl-C leaves`))
  expect(first.shown).toMatch(/succeeded {2}run_/)
  first.kill('SIGTERM')
  expect(await first.ended).toMatchObject({ code: 0 })
  expect(await project.json('runs', 'show', run_id)).toMatchObject({ run: { state: 'RUNNING' } })
})

test('[E7] a servo run that leads goes on with an earlier run whose request is repeated to it, and not with one whose key is misused', async () => {
  const project = projectOf({ 'assets/a.ts': WAITING })
  const dev = await project.dev('--concurrency', '1')
  await project.json('run', 'long', '--key', 'long', '--detach')
  const { run_id } = await project.json('run', 'quick', '--key', 'quick', '--detach')
  await until(() => existsSync(project.file('begun')), 'the long task')
  dev.kill('SIGKILL')
  await dev.ended

  const other = project.begin(['run', 'other'])
  await until(() => readFileSync(project.file('begun'), 'utf8').includes('other'), 'the task of the command')
  expect(await project.servo('run', 'quick', '--key', 'long')).toMatchObject({ code: 2 })
  expect(await project.json('run', 'quick', '--key', 'quick', '--detach')).toMatchObject({ run_id, created: false })
  expect(await project.servo('run', 'quick', '--key', 'quick')).toMatchObject({ code: 0 })
  const again = await project.servo('run', 'quick', '--key', 'quick')
  expect(again).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^run_\w{8} already ran under this key: succeeded at 20/),
  })
  expect(await project.json('run', 'quick', '--key', 'quick')).toMatchObject({ run_id, created: false })
  expect(await project.json('run', 'quick', '--key', 'fresh')).toMatchObject({ created: true })
  expect((await project.servo('runs', 'show', 'run_')).stderr).toMatch(/several runs start with run_\nhint: Write more/)
  await until(async () => (await project.shown(run_id)).run['state'] === 'SUCCEEDED', 'the run that was asked for again')
  project.write('go-other')
  expect(await other.ended).toMatchObject({ code: 0 })
  expect(readFileSync(project.file('begun'), 'utf8')).toBe('long\nother\n')
})

test('a servo run that gave way to a server which then went away ends its run itself', async () => {
  const chain = `${TRACED}
const made = []
for (let i = 0; i < 4; i++) made.push(traced('t/' + i, 1_500, made.slice(-1)))
export const all = made
`
  const project = projectOf({ 'assets/chain.ts': chain })
  const run = project.begin(['run', '*'])
  await until(() => beginnings(project).length > 0, 'the first task')
  const dev = project.begin(['dev', '--port', '0'])
  await dev.says(/taking over from the command that runs this project/)
  dev.kill('SIGKILL')
  const { code, stdout } = await run.ended
  expect(stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}4 tasks/)
  expect(code).toBe(0)
  expect(ends(project).map(({ key }) => key)).toEqual(['t/0', 't/1', 't/2', 't/3'])
})
