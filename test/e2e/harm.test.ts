import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { descendants, isAlive } from './support/processes.ts'
import { projectOf } from './support/project.ts'

/** Everything at once that user code can do to those around it. */
const HARMFUL = `import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

const group = 'all'
const line = 'x'.repeat(1023) + '\\n'
export const prints = asset('prints', { group, run() { for (let i = 0; i < 2 ** 20; i++) process.stdout.write(line) } })
export const forks = asset('forks', {
  group,
  async run() {
    for (let i = 0; i < 5; i++) spawn('sleep', ['600'])
    spawn('sh', ['-c', 'trap "" TERM INT HUP; sleep 600 & wait'])
    await sleep(100)
  },
})
export const throws = asset('throws', { group, run() { throw new Error('no such column') } })
export const exits = asset('exits', { group, run() { process.exit(137) } })
export const killed = asset('killed', { group, run() { process.kill(process.pid, 'SIGKILL') } })
export const hungry = asset('hungry', { group, run() { const all = []; for (;;) all.push(new Array(1e5).fill(all.length)) } })
export const blocks = asset('blocks', { group, timeout: '1s', run() { for (;;); } })
export const good = Array.from({ length: 12 }, (_, i) =>
  asset('good/' + i, { group, async run() { await sleep(50); return i } }))
export const below = asset('below', { group, deps: [throws], run: () => 1 })
`

const SUCCEED = ['prints', 'forks', ...Array.from({ length: 12 }, (_, i) => `good/${i}`)]
/** What the worst that printed may leave behind, with the quotes and times around each line. */
const KEPT_BYTES = 24 * 2 ** 20

const sizeOf = (folder: string): number =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .reduce((sum, entry) => sum + (entry.isFile() ? fs.statSync(`${entry.parentPath}/${entry.name}`).size : 0), 0)

test('[W5] tasks that print a gigabyte, fork, throw, exit, are killed, run out of memory or block harm nobody but themselves', async () => {
  const project = projectOf({ 'assets/harmful.ts': HARMFUL })
  // A heap that is soon full, for the workers and for the server too: it holds no more than it should.
  const dev = project.begin(['dev', '--port', '0', '--concurrency', '4'], { NODE_OPTIONS: '--max-old-space-size=192' })
  await dev.says(/ready in/)
  const run = project.begin(['run', 'group:all', '--quiet'])
  await run.says(/20 tasks\n/)
  let over = false
  void run.ended.then(() => {
    over = true
  })
  const waits: number[] = []
  const processes = new Set<number>()
  while (!over) {
    const asked = performance.now()
    const { stdout, code } = await project.servo('runs', 'list')
    waits.push(performance.now() - asked)
    expect(code).toBe(0)
    expect(stdout).toContain('group:all')
    for (const pid of descendants(dev.pid)) processes.add(pid)
    await sleep(100)
  }
  // A new process, the question and the answer: half a second when the machine is idle.
  expect(Math.max(...waits)).toBeLessThan(15_000)

  const { stdout, code } = await run.ended
  expect(stdout).toMatch(/\nfailed {2}run_\w{8} {2}14 succeeded, 5 failed, 1 skipped in /)
  expect(code).toBe(1)
  const [listed] = await project.json('runs', 'list')
  const { tasks } = await project.json('runs', 'show', listed.run_id)
  const keysIn = (state: string): string[] =>
    tasks.filter((task: { state: string }) => task.state === state).map((task: { task_key: string }) => task.task_key)
  expect(keysIn('SUCCEEDED').sort()).toEqual(SUCCEED.sort())
  expect(keysIn('SKIPPED')).toEqual(['below'])
  const why = Object.fromEntries(
    tasks.map((task: { task_key: string; error_message: string }) => [task.task_key, task.error_message]),
  )
  expect(why).toMatchObject({
    throws: 'no such column',
    exits: 'The code called process.exit(137).',
    killed: expect.stringContaining('SIGKILL'),
    hungry: expect.stringContaining('ran out of memory'),
    blocks: expect.stringContaining('longer than its timeout of 1 s'),
  })

  const { attempts } = await (await project.client()).runs.get(listed.run_id)
  const printed = attempts.find(({ task_key }) => task_key === 'prints')
  const logs = project.file(`.servo/tenant=default/workspace=default/logs/${listed.run_id}/${printed?.attempt_id}`)
  expect(sizeOf(logs)).toBeLessThan(KEPT_BYTES)
  const last = (await project.servo('runs', 'logs', listed.run_id, '--task', 'prints')).stdout.trimEnd().split('\n').at(-1)
  expect(last).toMatch(/MB of output were dropped/)

  dev.kill('SIGINT')
  expect((await dev.ended).code).toBe(0)
  expect([...processes].filter(isAlive)).toEqual([])
})
