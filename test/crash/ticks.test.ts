import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'
import { until } from '../e2e/support/until.ts'

/** More with `SERVO_TICK_KILLS=100`. */
const KILLS = Number(process.env['SERVO_TICK_KILLS'] ?? 2)

const SECONDS = `import { appendFileSync } from 'node:fs'
import { asset, schedule } from 'servo-flow'
export const orders = asset('orders', { run: ({ runId }) => { appendFileSync('made', runId + '\\n') } })
export const often = schedule('often', { cron: '* * * * * *', select: orders, catchup: { window: '10s', max: 3 } })
`

interface Tick {
  readonly scheduled_for: string
  readonly tick_count: number
  readonly status: string
  readonly run_id: string | null
}

test(`[A1][I12] a server that is killed ${KILLS} times at any moment records every second once, and makes exactly what it triggered`, {
  timeout: 240_000 + KILLS * 30_000,
}, async () => {
  const project = projectOf({ 'assets/a.ts': SECONDS })
  const made = (): string[] => {
    try {
      return readFileSync(project.file('made'), 'utf8').trim().split('\n')
    } catch {
      return []
    }
  }
  for (let kill = 0; kill < KILLS; kill++) {
    const dev = await project.dev()
    const before = made().length
    await until(() => made().length > before, 'a run')
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 2_500))
    dev.kill('SIGKILL')
    await dev.ended
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 5_000))
  }
  const dev = await project.dev()
  const last = made().length
  await until(() => made().length > last + 3, 'runs after the last start')
  await project.json('schedules', 'pause', 'often')
  const ticks: Tick[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more: string[] = cursor === '' ? [] : ['--cursor', cursor]
    const page: { ticks: Tick[]; next_cursor: string | null } = await project.json('schedules', 'ticks', 'often', ...more)
    ticks.push(...page.ticks)
    cursor = page.next_cursor
  }
  const seconds = ticks.flatMap(({ scheduled_for, tick_count }) =>
    Array.from({ length: tick_count }, (_, i) => Date.parse(scheduled_for) / 1_000 + i),
  )
  const sorted = seconds.sort((a, b) => a - b)
  expect(sorted, 'every second once').toEqual(sorted.map((_, i) => (sorted[0] ?? 0) + i))
  const asked = ticks.filter(({ status }) => status === 'triggered').map(({ run_id }) => run_id)
  expect(asked).not.toContain(null)
  await until(() => new Set(made()).size === asked.length, 'every tick made its run')
  expect(new Set(made())).toEqual(new Set(asked))
  dev.kill('SIGINT')
  await dev.ended
})
