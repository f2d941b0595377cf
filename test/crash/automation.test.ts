import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { projectOf, type TestProject } from '../e2e/support/project.ts'
import type { Servo } from '../e2e/support/servo.ts'
import { until } from '../e2e/support/until.ts'
import { lacksWrongClock, wrongClock } from '../e2e/support/wrong-clock.ts'

/** More with `SERVO_AUTOMATION_KILLS=100`. */
const KILLS = Number(process.env['SERVO_AUTOMATION_KILLS'] ?? 2)
const OFFSETS = ['+1h', '', '-1h', '', '+3d', '', '-2d', '']

const AUTOMATION = `import { appendFileSync, readFileSync } from 'node:fs'
import { asset, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
const noted = (name) => asset(name, { run: ({ runId }) => { appendFileSync('made-' + name, runId + '\\n') } })
export const ticked = noted('ticked')
export const sent = noted('sent')
export const found = noted('found')
export const often = schedule('often', { cron: '* * * * * *', select: ticked, catchup: { window: '10s', max: 3 } })
export const inbox = sensor.push('inbox', {
  source: webhook({ path: 'inbox', verify: 'none', schema: z.object({ n: z.number() }) }),
  on: () => run(sent),
})
export const feed = sensor.poll('feed', {
  every: '1s',
  cursor: z.number(),
  poll: ({ cursor = 0 }) => {
    const lines = readFileSync('feed', 'utf8').split('\\n').length - 1
    return { cursor: lines, runs: Array.from({ length: lines - cursor }, () => run(found)) }
  },
})
`

interface Tick {
  readonly scheduled_for: string
  readonly tick_count: number
  readonly status: string
  readonly run_id: string | null
}

/** A project with a schedule of every second, a webhook and a poll, its sender, its source, and servers that are killed. */
class Automation {
  readonly project: TestProject
  #sent = 0
  #lines = 0
  #isSending = true
  #dev: Servo | undefined

  constructor() {
    this.project = projectOf({ 'assets/a.ts': AUTOMATION, feed: '' })
    // Before its folder is removed.
    onTestFinished(() => {
      this.#isSending = false
    })
  }

  /** Ids of the runs of an asset that ran, each as often as it was begun. */
  made(asset: string): string[] {
    try {
      return readFileSync(this.project.file(`made-${asset}`), 'utf8')
        .trim()
        .split('\n')
    } catch {
      return []
    }
  }

  /** Sends one message after the other, each until it is accepted, as senders do; and every other one twice. */
  async send(): Promise<number> {
    while (this.#isSending) {
      const id = `m${this.#sent}`
      if (await this.#deliver(id)) {
        if (this.#sent % 2 === 0) await this.#deliver(id)
        this.#sent += 1
      }
      if (!this.#isSending) break
      appendFileSync(this.project.file('feed'), 'line\n')
      this.#lines += 1
      await sleep(100 + Math.random() * 200)
    }
    return this.#sent
  }

  async #deliver(id: string): Promise<boolean> {
    const body = JSON.stringify({ n: this.#sent })
    const headers = { 'content-type': 'application/json', 'x-message-id': id }
    try {
      const answer = await fetch(`${this.#dev?.url}/hooks/default/default/inbox`, { method: 'POST', headers, body })
      return answer.ok
    } catch {
      return false
    }
  }

  async start(offset = ''): Promise<void> {
    this.#dev = await this.project.devIn(offset === '' ? {} : wrongClock(offset))
  }

  /** A server that gets as far as a run of its schedule, and is killed at any moment after that. */
  async killed(offset = ''): Promise<void> {
    await this.start(offset)
    const before = this.made('ticked').length
    await until(() => this.made('ticked').length > before, 'a run')
    await sleep(Math.random() * 2_500)
    this.#dev?.kill('SIGKILL')
    await this.#dev?.ended
  }

  async stop(): Promise<void> {
    this.#dev?.kill('SIGINT')
    expect(await this.#dev?.ended).toMatchObject({ code: 0 })
  }

  /** By a server that stays: everything that was sent, found and ticked made its run, and nothing else did. */
  async examine(sending: Promise<number>): Promise<{ ticks: Tick[]; lines: number }> {
    const { project } = this
    await this.start()
    const before = this.made('ticked').length
    await until(() => this.made('ticked').length > before + 3, 'runs after the last start')
    this.#isSending = false
    const messages = await sending
    await until(() => new Set(this.made('found')).size >= this.#lines, 'every line made its run')
    await project.json('schedules', 'pause', 'often')
    const ticks = await this.#ticks()
    const asked = ticks.filter(({ status }) => status === 'triggered').map(({ run_id }) => run_id)
    expect(asked).not.toContain(null)
    expect(new Set(asked).size, 'each tick has a run of its own').toBe(asked.length)
    await until(() => new Set(this.made('ticked')).size >= asked.length, 'every tick made its run')
    expect(new Set(this.made('ticked'))).toEqual(new Set(asked))
    await until(() => new Set(this.made('sent')).size >= messages, 'every message made its run')
    await this.stop()
    const sql = (text: string) => project.query(text)
    const perMessage = await sql(
      "SELECT message_id, count(*)::INT AS n FROM sensor_evals WHERE accepted AND trigger_source = 'push' GROUP BY ALL",
    )
    expect(perMessage).toHaveLength(messages)
    expect(perMessage.filter(({ n }) => n !== 1)).toEqual([])
    const runs = await sql('SELECT asset_selection[1] AS asset, count(*)::INT AS n FROM runs GROUP BY ALL ORDER BY ALL')
    expect(runs).toEqual([
      { asset: 'found', n: this.#lines },
      { asset: 'sent', n: messages },
      { asset: 'ticked', n: asked.length },
    ])
    expect(new Set(this.made('sent')).size).toBe(messages)
    expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
    return { ticks, lines: this.#lines }
  }

  async #ticks(): Promise<Tick[]> {
    const ticks: Tick[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const more: string[] = cursor === '' ? [] : ['--cursor', cursor]
      const page: { ticks: Tick[]; next_cursor: string | null } = await this.project.json(
        'schedules',
        'ticks',
        'often',
        ...more,
      )
      ticks.push(...page.ticks)
      cursor = page.next_cursor
    }
    return ticks
  }
}

describe('a schedule of every second, a webhook and a poll', { timeout: 240_000 + KILLS * 30_000 }, () => {
  test(`[A1][I12] through ${KILLS} kills at any moment: every second once, one run for each message and each line`, async () => {
    const automation = new Automation()
    await automation.start()
    const sending = automation.send()
    await automation.stop()
    for (let kill = 0; kill < KILLS; kill++) {
      await automation.killed()
      await sleep(Math.random() * 5_000)
    }
    const { ticks } = await automation.examine(sending)
    const seconds = ticks.flatMap(({ scheduled_for, tick_count }) =>
      Array.from({ length: tick_count }, (_, i) => Date.parse(scheduled_for) / 1_000 + i),
    )
    const sorted = seconds.sort((a, b) => a - b)
    expect(sorted, 'every second once').toEqual(sorted.map((_, i) => (sorted[0] ?? 0) + i))
  })

  test.skipIf(lacksWrongClock)(
    '[A1][I12] through kills of servers whose clocks were set ahead and back: nothing twice, nothing lost',
    async () => {
      const automation = new Automation()
      await automation.start()
      const sending = automation.send()
      await automation.stop()
      for (let kill = 0; kill < Math.max(2, KILLS / 4); kill++) await automation.killed(OFFSETS[kill % OFFSETS.length])
      await automation.examine(sending)
    },
  )
})
