import { type ChildProcess, spawn } from 'node:child_process'
import path from 'node:path'
import readline from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { projectOf, type TestProject } from './support/project.ts'
import { until } from './support/until.ts'

const ASSETS = `import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'
export const quick = asset('quick', { run: () => 1 })
export const waits = asset('waits', { run: ({ signal }) => sleep(600_000, undefined, { signal }) })
`

/** Appends per process; one after the other, so that each finds the leader at rest. */
const APPENDS = 10
/** What a busy machine may add to what is promised; the promise itself is in the median that is printed. */
const PATIENCE_MS = 5_000

/** A process that appends to the folder as if no leader were there. */
class OtherWriter {
  readonly #child: ChildProcess
  readonly #answers: AsyncIterator<string>

  constructor(project: TestProject) {
    const script = path.join(import.meta.dirname, 'support/other-writer.ts')
    const args = [script, project.file('.servo'), JSON.stringify(project.runIdSecret)]
    this.#child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    onTestFinished(() => void this.#child.kill('SIGKILL'))
    this.#answers = readline.createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  }

  /** Asks for a run or cancels one, and says when that was durable. */
  async append(order: 'request' | 'cancel', what: string): Promise<{ run_id: string; at: number }> {
    this.#child.stdin?.write(`${order} ${what}\n`)
    return JSON.parse((await this.#answers.next()).value) as { run_id: string; at: number }
  }
}

test.each([
  ['by the watch on the folder', {}, 0],
  ['by looking from time to time, without the watch', { SERVO_WATCH: 'off', SERVO_LOOK_MS: '500' }, 500],
])('what two other processes append is decided upon %s', async (_, env, intervalMs) => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.devIn(env)
  const client = project.clientOf(dev)
  const writers = [new OtherWriter(project), new OtherWriter(project)]
  const delays: number[] = []
  await Promise.all(
    writers.map(async (writer, w) => {
      for (let i = 0; i < APPENDS; i++) {
        const { run_id, at } = await writer.append('request', `${w}-${i}`)
        const runOf = async () => (await client.runs.get(run_id).catch(() => undefined))?.run
        await until(async () => (await runOf())?.['state'] === 'SUCCEEDED', `${run_id}, which another process asked for`)
        // The plan is the first thing that the leader decides because of a request.
        delays.push(Date.parse(String((await runOf())?.['planned_at'])) - at)
        await sleep(Math.random() * 100)
      }
    }),
  )
  const sorted = [...delays].sort((a, b) => a - b)
  console.info(`decided after ${sorted[Math.floor(sorted.length / 2)]} ms in the median, ${sorted.at(-1)} ms at most`)
  expect(sorted.at(-1)).toBeLessThan(intervalMs + PATIENCE_MS)
  const runs = await client.runs.list({ limit: 100 })
  expect(runs).toHaveLength(2 * APPENDS)
  // The same in pages, of which each begins where the one before ended.
  const first = await client.runs.page({ limit: APPENDS, status: 'SUCCEEDED', trigger: 'manual' })
  const second = await client.runs.page({ limit: 100, cursor: first.next_cursor ?? '', asset: runs[0]?.assets?.[0] })
  expect([...first.runs, ...second.runs]).toEqual(runs)
  expect(await client.runs.list({ limit: 5, until: runs.at(-1)?.requested_at })).toEqual([])
  dev.kill('SIGINT')
  await dev.ended
  expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
})

test('a run that another process cancels stops', async () => {
  const project = projectOf({ 'assets/all.ts': ASSETS })
  const dev = await project.dev()
  const { run_id } = await project.json('run', 'waits', '--detach')
  await dev.says(/ running +waits\n/)
  await new OtherWriter(project).append('cancel', run_id)
  await until(
    async () => (await project.clientOf(dev).runs.get(run_id)).run['state'] === 'CANCELLED',
    'the run to be cancelled',
  )
})
