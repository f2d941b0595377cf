import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { projectOf, type TestProject } from '../e2e/support/project.ts'
import type { Servo } from '../e2e/support/servo.ts'
import { until } from '../e2e/support/until.ts'
import { lacksWrongClock, wrongClock } from '../e2e/support/wrong-clock.ts'

/** The acceptance asks for some dozens; a round is a handful of starts, so `npm test` makes do with one. */
const ROUNDS = Number(process.env['SERVO_CLOCK_ROUNDS'] ?? 1)
const STARTS_PER_ROUND = ROUNDS > 1 ? 6 : 4
const KILLS = ROUNDS > 1 ? 3 : 1
const OFFSETS = ['', '', '', '+3h', '-5h', '+26h', '-2d', '+9d', '-30d', '+1y', '-1y']

const HOLD = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'
export const quick = asset('quick', { run: () => 1 })
export const hold = asset('hold', { run: async () => { while (!existsSync('go')) await sleep(50) } })
`

/** A project and the runs that were acknowledged in it, with a server that is started by one clock after the other. */
class Rounds {
  readonly project: TestProject = projectOf({ 'assets/hold.ts': HOLD })
  readonly acknowledged: string[] = []

  /** An empty offset is the right clock. */
  async start(offset: string): Promise<Servo> {
    return await this.project.devIn(offset === '' ? {} : wrongClock(offset), '--concurrency', '100')
  }

  /** One run from beginning to end, and an orderly stop. */
  async once(offset: string): Promise<void> {
    const dev = await this.start(offset)
    const { runs } = this.project.clientOf(dev)
    const { run_id } = await runs.request({ select: ['quick'] }, 'somebody')
    this.acknowledged.push(run_id)
    await until(async () => (await runs.get(run_id)).run['state'] === 'SUCCEEDED', 'the run to succeed')
    dev.kill('SIGINT')
    expect((await dev.ended).code).toBe(0)
  }

  /** A run that is acknowledged, and no chance to do anything about it after `afterMs`. */
  async killed(offset: string, afterMs = 0): Promise<void> {
    const dev = await this.start(offset)
    const key = `m${this.acknowledged.length}`
    // Without a process in between, the kill comes right after the answer.
    const { run_id, created } = await this.project.clientOf(dev).runs.request({ select: ['hold'], key }, 'somebody')
    expect(created).toBe(true)
    this.acknowledged.push(run_id)
    if (afterMs > 0) await sleep(afterMs)
    dev.kill('SIGKILL')
    await dev.ended
  }

  /** By the right clock: every run is known, goes on, ends, and is in the tables; and those follow from the ledger. */
  async examine(): Promise<void> {
    const { project, acknowledged } = this
    const dev = await this.start('')
    const { runs } = project.clientOf(dev)
    const known = async (): Promise<Map<string, string>> =>
      new Map((await runs.list({ limit: 1_000 })).map(({ run_id, state }) => [run_id, state]))
    const listed = await known()
    expect(acknowledged.filter((id) => !listed.has(id))).toEqual([])
    project.write('go')
    await until(async () => {
      const now = await known()
      return acknowledged.every((id) => now.get(id) === 'SUCCEEDED')
    }, 'every run to succeed')
    // A server that is stopped publishes once more, but does not wait for that for long.
    await until(async () => {
      const ended = await project.query("SELECT run_id FROM runs WHERE state = 'SUCCEEDED'")
      return ended.length === acknowledged.length
    }, 'the tables to have every run')
    dev.kill('SIGINT')
    expect((await dev.ended).code).toBe(0)
    const rows = await project.query('SELECT run_id, state FROM runs')
    const expected = acknowledged.map((run_id) => ({ run_id, state: 'SUCCEEDED' }))
    expect(rows).toEqual(expect.arrayContaining(expected))
    expect(rows).toHaveLength(acknowledged.length)
    expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
  }
}

describe.skipIf(lacksWrongClock)('[L3][S7][I1] what was acknowledged is known, goes on and is in the tables', () => {
  test.each(['+26h', '+1y'])('after one start by a clock that was wrong by %s, and kills', async (offset) => {
    const rounds = new Rounds()
    await rounds.once(offset)
    for (let kill = 0; kill < KILLS; kill++) await rounds.killed('')
    await rounds.examine()
  })

  test('after a kill, and another of a server whose clock was two days behind', async () => {
    const rounds = new Rounds()
    await rounds.once('')
    await rounds.killed('')
    await rounds.killed('-2d')
    await rounds.killed('')
    await rounds.examine()
  })

  test('after kills of servers whose clocks were wrong by hours, days and a year, in any order', {
    timeout: 120_000 + ROUNDS * 120_000,
  }, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const rounds = new Rounds()
      const offsets = Array.from({ length: STARTS_PER_ROUND }, () => OFFSETS[Math.floor(Math.random() * OFFSETS.length)] ?? '')
      console.info(`clocks by turns: ${offsets.map((offset) => offset || 'right').join(', ')}`)
      for (const offset of offsets) {
        if (Math.random() < 0.3) await rounds.once(offset)
        // From before its tables are published until after that.
        else await rounds.killed(offset, Math.random() * 1_500)
      }
      await rounds.examine()
    }
  })
})
