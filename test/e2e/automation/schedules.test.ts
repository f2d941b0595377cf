import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

/** A schedule that ticks every second, and writes down which tick it was. */
const OFTEN = `import { appendFileSync } from 'node:fs'
import { asset, schedule } from 'servo-flow'
export const orders = asset('orders', { run: ({ runId }) => { appendFileSync('made', runId + '\\n') } })
export const often = schedule('often', { cron: '* * * * * *', select: orders, catchup: { window: '1h', max: 2 } })
export const nightly = schedule('nightly', { cron: '0 5 * * *', timezone: 'Europe/Paris', select: 'orders' })
`

interface Tick {
  readonly scheduled_for: string
  readonly scheduled_until: string | null
  readonly tick_count: number
  readonly status: string
  readonly run_id: string | null
}

test('[I12] every second has its tick and every tick its run, through kill -9 and a restart; a pause is on record', async () => {
  const project = projectOf({ 'assets/a.ts': OFTEN })
  const dev = await project.dev()
  await dev.says(/often ticks at /)
  await dev.says(/often {2}triggered {2}tick of/)
  await until(() => made(project).length >= 3, 'three runs')
  dev.kill('SIGKILL')
  await dev.ended
  await new Promise((resolve) => setTimeout(resolve, 4_000))

  const next = await project.dev()
  await next.says(/often {2}skipped {2}\d+ ticks from .* to /)
  await next.says(/often {2}triggered {2}tick of .*, caught up/)
  const before = made(project).length
  await until(() => made(project).length >= before + 4, 'runs after the restart')
  const paused = await project.json('schedules', 'pause', 'often', '--reason', 'enough')
  expect(paused).toMatchObject([
    { schedule_name: 'often', message: 'schedule paused. Resume it: servo schedules resume often' },
  ])
  await next.says(/often {2}paused by .*: enough/)
  await next.says(/often {2}skipped {2}.*paused by .*: enough/)
  const skipped = (await project.servo('schedules', 'ticks', '--status', 'skipped', '--since', '2025-01-15')).stdout
  expect(skipped).toMatch(/ to \S+ \S+ \(\d+\) +skipped +often +missed while no server ran/)
  expect(skipped).toMatch(/skipped +often +paused by .*: enough/)
  next.kill('SIGINT')
  await next.ended
  await (await project.dev()).says(/ 1 paused: often/)

  const { ticks } = (await project.json('schedules', 'ticks', 'often', '--limit', '1000')) as { ticks: Tick[] }
  const triggered = ticks.filter(({ status }) => status === 'triggered')
  const seconds = ticks.flatMap(({ scheduled_for, tick_count }) =>
    Array.from({ length: tick_count }, (_, i) => Date.parse(scheduled_for) / 1_000 + i),
  )
  const sorted = [...new Set(seconds)].sort((a, b) => a - b)
  const first = sorted[0] ?? 0
  expect(sorted, 'no second is missing').toEqual(sorted.map((_, i) => first + i))
  expect(seconds, 'no second is there twice').toHaveLength(sorted.length)
  // Exactly the triggered ticks made something; a run that the kill interrupted made it again.
  await until(() => new Set(made(project)).size === triggered.length, 'every tick made its run')
  expect(new Set(made(project))).toEqual(new Set(triggered.map(({ run_id }) => run_id)))
  expect(
    ticks.some(({ tick_count }) => tick_count > 1),
    'what was missed is skipped together',
  ).toBe(true)
})

test('commands about schedules work without a server, and say that nothing ticks', async () => {
  const project = projectOf({ 'assets/a.ts': OFTEN })
  const dev = await project.dev('--no-automation')
  await dev.says(/automation is off: schedules do not tick/)
  expect((await project.servo('automation', 'status')).stdout).toMatch(/^automation is off: .*\n$/)
  expect(await project.json('schedules', 'list')).toEqual({ schedules: [], next_cursor: null })
  dev.kill('SIGINT')
  await dev.ended
  expect(made(project)).toEqual([])

  const again = await project.dev()
  const triggered = await project.servo('schedules', 'trigger', 'nightly', '--at', '2025-01-15T05:00')
  expect(triggered.stdout).toMatch(/^nightly triggered: run_\w+\n$/)
  const caughtUp = await project.servo('schedules', 'catchup', 'nightly', '2025-01-15T05:00', '2025-01-15T04:30')
  expect(caughtUp.code).toBe(1)
  expect(caughtUp.stdout).toMatch(/2025-01-15 04:30 +refused +nightly does not tick at .* \(Europe\/Paris\), but at /)
  expect(caughtUp.stdout).toMatch(
    /2025-01-15 05:00 +refused +nightly was declared at .* \(Europe\/Paris\), after 2025-01-15 05:00\n/,
  )
  expect((await project.servo('schedules', 'trigger', 'nightly')).code).toBe(0)
  await until(async () => (await project.json('schedules', 'ticks', 'often')).ticks.length > 0, 'often to tick')
  again.kill('SIGINT')
  await again.ended
  const listed = await project.servo('schedules', 'list')
  expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining('schedules tick only while one is') })
  expect(listed.stdout).toMatch(/nightly +active +20\d\d-.* triggered by \w+/)
  expect((await project.servo('schedules', 'show', 'nightly')).stdout).toMatch(/last run +run_\w+ 20\S+ \S+ \w+, triggered by/)
  const ticks = (await project.servo('schedules', 'ticks', 'nightly')).stdout
  expect(ticks).toMatch(/2025-01-15 04:00:00 +triggered +run_\w+ +triggered by \w+ at 20/)
  const span = await project.servo('schedules', 'catchup', 'nightly', '--from', '2025-01-14', '--to', '2025-01-15', '--dry-run')
  expect(span.stdout, 'none is from before it was declared').toMatch(
    /^nightly has no ticks in that span; it was declared at 20/,
  )
  const { definition } = await project.json('schedules', 'show', 'often')
  const since = await project.json('schedules', 'catchup', 'often', '--from', '2025-01-14', '--dry-run')
  const moments = [...since.accepted, ...since.refused].map((tick: Tick) => tick.scheduled_for).sort()
  expect((moments[0] ?? '') > definition.created_at, `${moments[0]} after ${definition.created_at}`).toBe(true)
  expect(since.refused).toContainEqual(expect.objectContaining({ code: 'already_triggered' }))
  expect((await project.servo('schedules', 'show', 'nightly')).stdout).toMatch(/catch-up +24 h, at most 1\n/)
  const [last] = (await project.json('runs', 'list', '--limit', '1')) as { run_id: string; asked_by: string }[]
  expect(last?.asked_by).toMatch(/^schedule (often|nightly)$/)
  expect((await project.servo('runs', 'list')).stdout).toMatch(/ schedule nightly {2,}orders\n/)
  expect((await project.servo('runs', 'show', last?.run_id ?? '')).stdout).toMatch(/requested .* \(schedule \w+\)\n/)
  const base = await project.servo(
    'schedules',
    'create',
    'x',
    '--cron',
    '@daily',
    '--timezone',
    'Mars/Base',
    '--select',
    'orders',
  )
  expect(base).toMatchObject({ code: 2, stderr: expect.stringMatching(/--timezone: .*Mars\/Base[\s\S]*Europe\/Paris/) })
  expect(await project.servo('schedules', 'catchup', 'nightly')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no ticks named'),
  })
  expect(listed.stdout).toContain(`next tick (${Intl.DateTimeFormat().resolvedOptions().timeZone})`)
  expect(await project.servo('schedules', 'update', 'nightly')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no changes given for nightly'),
  })
  expect(await project.servo('schedules', 'create', 'x', '--cron', '@daily', '--select', 'nope')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('asset "nope" not found'),
  })
  expect(await project.servo('schedule', 'show', 'nightli')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Did you mean nightly?'),
  })
  const created = await project.servo('schedules', 'create', 'x', '--cron', '61 * * * *', '--select', 'orders')
  expect(created).toMatchObject({ code: 2, stderr: expect.stringContaining('minute 61 is out of range (0–59)') })
  expect(await project.json('schedules', 'create', 'x', '--cron', '0 4 * * *', '--select', 'orders')).toMatchObject({
    schedule_name: 'x',
  })
  expect(await project.servo('schedules', 'delete', 'nightly')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('assets/a.ts:5'),
  })
  expect((await project.servo('schedules', 'delete', 'x')).stdout).toBe('x: schedule deleted\n')
  await project.json('automation', 'pause', '--reason', 'maintenance')
  expect((await project.servo('automation', 'status')).stdout).toMatch(/^paused by \S+ at .*: maintenance\n$/)
  expect((await project.servo('schedules', 'list')).stdout).toMatch(/nightly +paused .* all automation .*maintenance/)
})

const made = (project: { file(name: string): string }): string[] => {
  try {
    return readFileSync(project.file('made'), 'utf8').trim().split('\n')
  } catch {
    return []
  }
}
