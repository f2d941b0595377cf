import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import { ScheduleSimulation } from '../../testing/schedule-simulation.ts'
import { AutomationPaused } from '../automation/automation-paused.event.ts'
import { pauseOf } from '../schedules/regime.ts'
import { scheduleDefinitions } from '../schedules/schedule-definitions.table.ts'
import { SchedulePaused } from '../schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from '../schedules/schedule-removed.event.ts'
import { failCodes, skipCodes } from '../schedules/schedule-ticks.table.ts'
import { momentAsked } from './moment-asked.ts'
import type { WhyAnswer } from './reasons.ts'
import { latestDue, type RunOfTick, runBehind, type TickRow, tickWithin, whySchedule } from './why-schedule.ts'
import { whyInWords } from './words.ts'

const START = Date.UTC(2025, 0, 15)
const at = (hour: number, minute = 0, day = 15): number => Date.UTC(2025, 0, day, hour, minute)
const SCHEDULE = '01JHMPFN80SCHED00000000000'

/** What the server would answer from this history. */
function ask(history: ScheduleSimulation, asked?: string): WhyAnswer {
  const rows = history.bench.state
  const definition = rows.hot(scheduleDefinitions).get(SCHEDULE)
  if (definition === undefined) throw new Error('the schedule was defined')
  const state = history.state()
  const known = { definition, state, pause: pauseOf(rows, state), now: history.now }
  const due =
    asked === undefined ? latestDue(known) : tickWithin(definition, momentAsked(asked, definition.timezone, known.now))
  if (due === undefined) return whySchedule(known, { at: undefined, tick: undefined, run: undefined })
  const tick = history.ticks().find((row) => covers(row, due))
  const id = tick && runBehind(tick)
  const found = history.runs().find(({ run_id }) => run_id === id)
  const source = found?.trigger_source_ref
  const own = history.ticks().find(({ tick_id }) => source?.type === 'schedule' && tick_id === source.tick_id)
  const run: RunOfTick | undefined = found && { ...found, scheduled_for: own?.scheduled_for ?? null }
  return whySchedule(known, { at: due, tick, run })
}

const covers = (row: TickRow, due: number): boolean =>
  row.scheduled_for !== null && row.scheduled_for <= due && (row.scheduled_until ?? row.scheduled_for) >= due

const say = (history: ScheduleSimulation, asked?: string): string[] =>
  whyInWords(ask(history, asked), 'UTC').map(
    ({ depth, text }) => '  '.repeat(depth) + text.replace(/run_[a-z2-7]{26}/g, 'run_…'),
  )

function daily(more: object = {}): ScheduleSimulation {
  const history = new ScheduleSimulation(START)
  history.define({ cron_expressions: ['0 5 * * *'], ...more })
  return history
}

function hourly(more: object = {}): ScheduleSimulation {
  const history = new ScheduleSimulation(START)
  history.define({ cron_expressions: ['0 * * * *'], ...more })
  return history
}

const pause = (history: ScheduleSimulation, reason: string | null = null): void =>
  history.tell(SchedulePaused, { schedule_id: SCHEDULE, request_id: 'p', changed_by: 'ana', reason })

describe('why a schedule ran or did not', () => {
  test('[A61] it ran on time', () => {
    const history = daily()
    history.run(6 * HOUR_MS)
    expect(say(history)).toEqual([
      'nightly ran at 2025-01-15 05:00 (UTC): on time, as run_… (pending)',
      '  next tick: 2025-01-16 05:00',
    ])
  })

  test('[A61] it was paused: while it is, when the ticks are on record, and when it was resumed since', () => {
    const history = daily()
    history.run(2 * HOUR_MS + 10 * MINUTE_MS)
    pause(history, 'the warehouse is down')
    history.wait(3 * HOUR_MS)
    const head = 'nightly did not run at 2025-01-15 05:00 (UTC): paused by ana at 02:10: the warehouse is down'
    expect(history.ticks()).toEqual([])
    expect(say(history)).toEqual([head, '  resume it: servo schedules resume nightly'])
    history.run(HOUR_MS)
    expect(history.ticks()).toHaveLength(1)
    expect(say(history)).toEqual([head, '  resume it: servo schedules resume nightly'])
    history.setPaused(false)
    history.run(MINUTE_MS)
    expect(say(history, '05:00')).toEqual([head, '  next tick: 2025-01-16 05:00'])
  })

  test('[A61] all automation was paused', () => {
    const history = daily()
    history.run(HOUR_MS)
    history.tell(AutomationPaused, { request_id: 'a', changed_by: 'bo' })
    history.run(DAY_MS)
    expect(say(history)).toEqual([
      'nightly did not run at 2025-01-15 05:00 (UTC): all automation was paused by bo at 01:00',
      '  resume it: servo automation resume',
    ])
  })

  test('[A61] an earlier run was unfinished', () => {
    const history = hourly({ overlap: 'skip' })
    history.run(5 * HOUR_MS + MINUTE_MS)
    expect(say(history)).toEqual([
      'nightly did not run at 2025-01-15 05:00 (UTC): run_… of 01:00 was unfinished (overlap: skip); it is still pending',
      '  next tick: 06:00',
    ])
  })

  test('[A61] it was missed while nothing ran: outside the window, beyond the limit, or caught up', () => {
    const history = hourly()
    history.run(HOUR_MS + MINUTE_MS)
    history.wait(2 * DAY_MS)
    history.run(MINUTE_MS)
    expect(history.now).toBe(at(1, 2, 17))
    expect(say(history, '2025-01-15T20:00')).toEqual([
      'nightly did not run at 2025-01-15 20:00 (UTC): no server ticked then, and at 2025-01-17 01:01 it was older than the catch-up window of 24 h',
      '  it is one of 24 ticks in a row, from 02:00 to 2025-01-16 01:00',
      '  next tick: 2025-01-17 02:00',
    ])
    expect(say(history, '2025-01-16T20:00')[0]).toBe(
      'nightly did not run at 2025-01-16 20:00 (UTC): no server ticked then, and at 2025-01-17 01:01 it was too late: of the missed ticks, only the newest one may run',
    )
    expect(say(history)[0]).toBe('nightly ran late for 2025-01-17 01:00 (UTC): caught up at 01:01, as run_… (pending)')
  })

  test('[A61] it was not due, or did not exist, or no server has decided', () => {
    const history = daily({ start_at: toZ(at(5, 0, 16)), end_at: toZ(at(5, 0, 18)) })
    expect(say(history)[0]).toBe('nightly did not run: it has had no tick since it was declared at 2025-01-15 00:00')
    history.wait(5 * DAY_MS)
    const said = (asked: string): string | undefined => say(history, asked)[0]?.split(': ').slice(1).join(': ')
    expect(said('2025-01-14T05:00')).toBe('it was not declared until 2025-01-15 00:00')
    expect(say(history, '2025-01-14T06:00').slice(0, 2)).toEqual([
      'nightly did not run at 2025-01-14 06:00 (UTC): it does not tick then; the first tick after is at 2025-01-16 05:00',
      '  it was not declared until 2025-01-15 00:00',
    ])
    expect(said('2025-01-15T05:00')).toBe('it does not tick before its start, 2025-01-16 05:00')
    expect(said('2025-01-19T05:00')).toBe('it does not tick after its end, 2025-01-18 05:00')
    expect(said('2025-01-17T06:00')).toBe(
      'it does not tick then; the tick before is at 05:00, the one after is at 2025-01-18 05:00',
    )
    expect(said('2025-01-17T05:00')).toMatch(/^no server has decided this tick yet: .*\. Start one: servo dev$/)
    expect(say(history).at(-1)).toBe('  there is no next tick: it ended at 05:00')
  })

  test('[A61] its selection cannot run', () => {
    const history = daily({ asset_selection: ['nothing'] })
    history.run(6 * HOUR_MS)
    expect(say(history)[0]).toMatch(/did not run at 2025-01-15 05:00 \(UTC\): its selection cannot run: asset .* not found/)
  })

  test('[A61] it was disabled, changed or removed', () => {
    const disabled = daily({ enabled: false })
    disabled.wait(DAY_MS)
    expect(say(disabled)[0]).toBe('nightly did not run at 2025-01-15 05:00 (UTC): it has been disabled since 00:00')
    const changed = daily()
    changed.wait(6 * HOUR_MS)
    changed.define({ cron_expressions: ['0 4 * * *'] })
    expect(say(changed, '04:00')[0]).toMatch(/it was changed at 06:00/)
    const removed = daily()
    removed.run(6 * HOUR_MS)
    removed.tell(ScheduleRemoved, { schedule_id: SCHEDULE, request_id: 'r', removed_by: 'ana' })
    removed.wait(DAY_MS)
    expect(say(removed)).toEqual([
      'nightly ran at 2025-01-15 05:00 (UTC): on time, as run_… (pending)',
      '  it was removed at 06:00',
    ])
    expect(say(removed, '05:00')[0]).toBe('nightly did not run at 2025-01-16 05:00 (UTC): it was removed at 2025-01-15 06:00')
  })

  test('[A61] a moment to come is due, or will not run and why', () => {
    const history = daily()
    expect(say(history, '2025-01-16T05:00')[0]).toBe('nightly is due at 2025-01-16 05:00 (UTC)')
    pause(history)
    expect(say(history, '2025-01-16T05:00')[0]).toBe(
      'nightly will not run at 2025-01-16 05:00 (UTC): paused by ana at 2025-01-15 00:00',
    )
  })

  test('[A61] times are those of the zone of the schedule, in what is asked and in what is answered', () => {
    const history = daily({ timezone: 'America/New_York' })
    history.run(12 * HOUR_MS)
    const answer = ask(history, '5:00')
    expect([answer.at, answer.timezone]).toEqual(['2025-01-15T10:00:00.000Z', 'America/New_York'])
    expect(say(history, '5:00')[0]).toMatch(/^nightly ran at 2025-01-15 05:00 \(America\/New_York\): on time/)
    for (const wrong of ['25:00', '2025-02-30', 'noon', '2025-01-15T5', '']) {
      expect(() => momentAsked(wrong, 'UTC', START), wrong).toThrow(`${JSON.stringify(wrong)} is not a time`)
    }
  })

  test('[A61] every reason that a tick can have on record has words of its own', () => {
    const history = daily({ overlap: 'skip' })
    history.run(6 * HOUR_MS)
    const [row] = history.ticks()
    if (row === undefined) throw new Error('it ticked')
    const definition = history.bench.state.hot(scheduleDefinitions).get(SCHEDULE)
    if (definition === undefined) throw new Error('the schedule was defined')
    const known = { definition, state: history.state(), pause: null, now: history.now }
    for (const reason_code of [...skipCodes, ...failCodes]) {
      const tick = { ...row, status: 'skipped', reason_code, reason: 'as it was recorded' } as const
      const answer = whySchedule(known, { at: at(5), tick, run: undefined })
      expect(answer.because[0]?.code, reason_code).toBe(reason_code)
      expect(whyInWords(answer, 'UTC')[0]?.text, reason_code).not.toContain('undefined')
    }
    const other = whySchedule(known, {
      at: at(5),
      tick: { ...row, status: 'failed', reason_code: 'of_a_later_version', reason: 'x' },
      run: undefined,
    })
    expect(other.because[0]).toMatchObject({ code: 'other_reason', facts: { code: 'of_a_later_version', text: 'x' } })
  })

  test('[A61] a tick that the clock brought late says how late; a condition is not said twice; automation may be off', () => {
    const history = daily()
    history.run(6 * HOUR_MS)
    const [row] = history.ticks()
    const definition = history.bench.state.hot(scheduleDefinitions).get(SCHEDULE)
    if (row === undefined || definition === undefined) throw new Error('it was defined, and ticked')
    const known = { definition, state: history.state(), pause: null, now: history.now }
    const said = (tick: Partial<TickRow>, isOn = true): string[] =>
      whyInWords(whySchedule({ ...known, isOn }, { at: at(5), tick: { ...row, ...tick }, run: undefined }), 'UTC').map(
        ({ text }) => text.replace(/^.*?\(UTC\): /, '').replace(/, as .*/, ''),
      )
    expect(said({ evaluated_at: at(5) + 900 })[0]).toBe('on time')
    expect(said({ evaluated_at: at(5) + 15_200 })[0]).toBe('15 s late')
    const skipped = { status: 'skipped', reason_code: 'condition', reason: 'its condition did not hold' } as const
    expect(said(skipped)[0]).toBe('its condition did not hold')
    expect(said({ ...skipped, reason: 'a holiday' })[0]).toBe('its condition did not hold: a holiday')
    const failed = { status: 'failed', reason_code: 'condition_error' } as const
    expect(
      said({ ...failed, reason: 'its condition could not be evaluated: db is down\n    at when (assets/jobs.ts:12:5)' })[0],
    ).toBe('its condition could not be evaluated: db is down (assets/jobs.ts:12)')
    const manual = { at: at(5, 30), by: 'ana', run: { run_id: 'run_a', state: 'RUNNING' as const, scheduled_for: null } }
    const since = whySchedule(known, { at: at(5), tick: row, run: undefined, manual })
    expect(whyInWords(since, 'UTC')[1]?.text).toBe('ana triggered it at 05:30, as run_a (running)')
    expect(said({}, false)[1]).toMatch(/^automation is off on the server that runs/)
  })

  test('[A61] a name with a line break does not make a line', () => {
    const history = daily()
    history.run(HOUR_MS)
    pause(history, null)
    const answer = ask(history, '2025-01-15T05:00')
    const named = { ...answer, subject: { ...answer.subject, name: 'a\nb ran' } }
    expect(whyInWords(named, 'UTC')[0]?.text).toMatch(/^a\\nb ran will not run/)
  })
})

function toZ(ms: number): string {
  return new Date(ms).toISOString()
}
