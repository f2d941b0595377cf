import { describe, expect, test } from 'vitest'
import { AutomationPaused } from '../../../src/domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../../src/domain/automation/automation-resumed.event.ts'
import { SensorCursorReset } from '../../../src/domain/sensors/sensor-cursor-reset.event.ts'
import { SensorPaused } from '../../../src/domain/sensors/sensor-paused.event.ts'
import { SensorResumed } from '../../../src/domain/sensors/sensor-resumed.event.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { every, oneRun, Sensing } from './sensing.ts'

const files = { name: 'inbox', config: every(MINUTE_MS) }
const by = (request_id: string) => ({ request_id, changed_by: 'ana', reason: 'maintenance' })
const cursors = (sensing: Sensing) => sensing.evaluator.asked.map((request) => Reflect.get(request, 'cursor'))

/** A poll that finds one more each time: the cursor is a number. */
function counting(sensing: Sensing, ms = 0): void {
  sensing.evaluator.script = (request) => {
    const cursor = request.of === 'poll' ? Number(request.cursor ?? 0) : 0
    return { ms, report: { ...oneRun(), cursor: String(cursor + 1) } }
  }
}

describe('a poll', () => {
  test('[A32] is made as soon as the sensor is declared and then every so often, each from the cursor of the one before', async () => {
    const sensing = await Sensing.open([])
    counting(sensing)
    await sensing.clock.advance(HOUR_MS)
    expect(sensing.evaluator.asked).toEqual([])
    await sensing.load([files])
    await sensing.clock.advance(3 * MINUTE_MS + SECOND_MS)
    expect(cursors(sensing)).toEqual([null, '1', '2', '3'])
    expect(sensing.runs()).toHaveLength(4)
    expect(sensing.state()).toMatchObject({ cursor: '4', state_version: 4 })
    await sensing.load([])
    await sensing.clock.advance(HOUR_MS)
    expect(cursors(sensing)).toHaveLength(4)
  })

  test('[A44] that is slow is not overtaken by the next one of its sensor, and no more than 16 go on side by side', async () => {
    const sensing = await Sensing.open([])
    counting(sensing, 4 * SECOND_MS)
    await sensing.load(Array.from({ length: 40 }, (_, n) => ({ ...files, name: `poll-${n}` })))
    await sensing.clock.advance(10 * MINUTE_MS)
    expect(sensing.evaluator.most).toBe(16)
    expect(new Set(sensing.evaluator.asked.map((request) => Reflect.get(request, 'sensor'))).size).toBe(40)
    expect(sensing.evals().filter(({ status }) => status !== 'triggered')).toEqual([])
  })

  test('[A3][A21] that began from the same version as another which was faster is skipped_stale_cursor, and makes no run', async () => {
    const sensing = await Sensing.open([files])
    counting(sensing)
    await sensing.clock.advance(SECOND_MS)
    // Two hubs of one leader stand for two processes that both believe that they lead.
    counting(sensing, 10 * SECOND_MS)
    const twin = sensing.twin()
    const id = sensing.idOf()
    const made = sensing.runs().length
    const both = await sensing.soon(Promise.all([sensing.hub.poll(id, 'ana'), twin.poll(id, 'ana')]))
    expect(both.map(({ status }) => status).sort()).toEqual(['skipped_stale_cursor', 'triggered'])
    expect(sensing.runs()).toHaveLength(made + 1)
    expect(sensing.evals().filter(({ status }) => status === 'skipped_stale_cursor')).toMatchObject([{ accepted: false }])
  })

  test('[A3] of a sensor whose cursor is reset meanwhile is stale, and the next one begins from the new cursor', async () => {
    const sensing = await Sensing.open([files])
    counting(sensing, 10 * SECOND_MS)
    await sensing.clock.advance(SECOND_MS)
    await sensing.write(SensorCursorReset, { sensor_id: sensing.idOf(), ...by('r1'), cursor: '100' })
    await sensing.clock.advance(MINUTE_MS + 20 * SECOND_MS)
    expect(cursors(sensing)).toEqual([null, '100'])
    expect(sensing.evals().map(({ status }) => status)).toEqual(['skipped_stale_cursor', 'triggered'])
    expect(sensing.state()?.cursor).toBe('101')
    expect(sensing.runs()).toHaveLength(1)
  })

  test('[A24] that fails or takes too long is on record, and the next ones wait longer and longer until one is good', async () => {
    const sensing = await Sensing.open([{ ...files, config: every(SECOND_MS) }])
    let failures = 0
    sensing.evaluator.script = () => {
      failures += 1
      return { report: failures % 2 === 0 ? { outcome: 'timed_out' } : { outcome: 'error', error: 'the bucket is gone' } }
    }
    await sensing.clock.advance(76 * SECOND_MS)
    // At 0, 5, 15, 35 and 75 seconds.
    expect(sensing.evals().map(({ status, state_version }) => [status, state_version])).toEqual(
      [0, 1, 2, 3, 4].map((version) => ['error', version]),
    )
    expect(sensing.state()).toMatchObject({ status: 'ERROR', consecutive_errors: 5, cursor: null })
    sensing.evaluator.script = () => ({})
    await sensing.clock.advance(81 * SECOND_MS)
    expect(sensing.state()).toMatchObject({ status: 'ACTIVE', consecutive_errors: 0, backoff_until: null })
    expect(sensing.troubles).toEqual([])
  })

  test('[A33] is not made while its sensor or all automation is paused, and is made again afterwards', async () => {
    const sensing = await Sensing.open([files])
    counting(sensing)
    await sensing.clock.advance(SECOND_MS)
    const sensor_id = sensing.idOf()
    await sensing.write(SensorPaused, { sensor_id, ...by('r1') })
    await sensing.clock.advance(HOUR_MS)
    expect(cursors(sensing)).toHaveLength(1)
    await expect(sensing.hub.poll(sensor_id, 'ana')).rejects.toMatchObject({ kind: 'conflict', code: 'sensor_paused' })
    await sensing.write(SensorResumed, { sensor_id, ...by('r2') })
    await sensing.clock.advance(SECOND_MS)
    expect(cursors(sensing)).toHaveLength(2)
    await sensing.write(AutomationPaused, by('r3'))
    await sensing.clock.advance(HOUR_MS)
    expect(cursors(sensing)).toHaveLength(2)
    await sensing.write(AutomationResumed, by('r4'))
    await sensing.clock.advance(MINUTE_MS)
    expect(cursors(sensing)).toHaveLength(3)
  })

  test('[A44] that hangs does not keep others waiting, however many do', async () => {
    const sensing = await Sensing.open([])
    const hanging = Array.from({ length: 20 }, (_, n) => ({ ...files, name: `hangs-${n}` }))
    counting(sensing, 9 * MINUTE_MS)
    await sensing.load(hanging)
    await sensing.clock.advance(MINUTE_MS)
    expect(new Set(sensing.evaluator.asked.map((request) => Reflect.get(request, 'sensor'))).size).toBe(20)
  })

  test('[A79] while no code can be evaluated is tried less and less often, and at once when the project is loaded again', async () => {
    const often = { ...files, config: every(SECOND_MS) }
    const sensing = await Sensing.open([often])
    sensing.evaluator.script = () => ({ report: { outcome: 'unavailable', reason: 'nonsense is not defined' } })
    await sensing.clock.advance(MINUTE_MS)
    const before = sensing.evaluator.asked.length
    await sensing.clock.advance(30 * MINUTE_MS)
    expect(sensing.evaluator.asked.length - before).toBeLessThanOrEqual(6)
    expect(sensing.evaluator.asked.length - before).toBeGreaterThanOrEqual(3)
    expect(sensing.evals()).toEqual([])
    counting(sensing)
    await sensing.load([often])
    await sensing.clock.advance(3 * SECOND_MS)
    expect(sensing.evals().length).toBeGreaterThanOrEqual(2)
  })

  test('[A45] by hand is made at once although it is not due, after the one that is under way, and says who asked', async () => {
    const sensing = await Sensing.open([{ ...files, config: every(24 * HOUR_MS) }])
    counting(sensing, 10 * SECOND_MS)
    await sensing.clock.advance(SECOND_MS)
    const polled = await sensing.soon(sensing.hub.poll(sensing.idOf(), 'ana'))
    expect(polled.status).toBe('triggered')
    expect(cursors(sensing)).toEqual([null, '1'])
    sensing.evaluator.script = () => ({})
    const empty = await sensing.soon(sensing.hub.poll(sensing.idOf(), 'ana'))
    expect(empty).toMatchObject({ status: 'no_new_data', eval_id: expect.any(String) })
    expect(sensing.evals().map(({ requested_by }) => requested_by)).toEqual([null, 'ana', 'ana'])
  })

  test('[A32] goes on in time when the clock is set back or ahead, and after an outage within a minute', async () => {
    const sensing = await Sensing.open([files])
    counting(sensing)
    await sensing.clock.advance(SECOND_MS)
    for (const step of [-3 * HOUR_MS, 5 * HOUR_MS, -2 * HOUR_MS]) {
      const before = sensing.evaluator.asked.length
      sensing.clock.jump(step)
      await sensing.clock.advance(5 * MINUTE_MS)
      const polls = sensing.evaluator.asked.length - before
      expect([4, 5, 6], `after ${step}`).toContain(polls)
    }
    const before = sensing.evaluator.asked.length
    sensing.kill()
    await sensing.clock.advance(3 * HOUR_MS)
    await sensing.start()
    await sensing.clock.advance(MINUTE_MS)
    expect(sensing.evaluator.asked.length - before).toBeGreaterThanOrEqual(1)
    expect(sensing.evals().filter(({ status }) => status !== 'triggered')).toEqual([])
  })
})

describe('polls that find nothing', () => {
  const many = Array.from({ length: 100 }, (_, n) => ({ ...files, name: n === 0 ? 'inbox' : `poll-${n}` }))

  test('[A23][A44] cost a write every two minutes for all sensors together, and nothing is asked of the store in between', async () => {
    const sensing = await Sensing.open([])
    await sensing.load(many)
    await sensing.clock.advance(5 * MINUTE_MS)
    sensing.store.reset()
    await sensing.clock.advance(10 * MINUTE_MS)
    expect(sensing.evaluator.asked.length).toBeGreaterThanOrEqual(1_500)
    expect(sensing.writes).toBeLessThanOrEqual(5)
    expect(sensing.writes).toBeGreaterThanOrEqual(4)
    expect(sensing.store.count('create', 'put'), 'no table is published for them').toBe(sensing.writes)
    const busy: number[] = []
    for (let second = 0; second < 120; second++) {
      sensing.store.reset()
      await sensing.clock.advance(SECOND_MS)
      // The notifier of this test may miss segments, so that the ledger is listed now and then.
      if (sensing.store.requests.some(({ method }) => method !== 'list')) busy.push(second)
    }
    expect(busy.length).toBeLessThanOrEqual(1)
    const [row] = sensing.evals().filter(({ sensor_id }) => sensor_id === sensing.idOf())
    expect(row).toMatchObject({ status: 'no_new_data', accepted: false, state_version: 0 })
    expect(row?.eval_count).toBeGreaterThanOrEqual(15)
  })

  test('[A44] cost at most one write a minute over four hours, with the tables that are published for them', async () => {
    const sensing = await Sensing.open(many.slice(0, 20), { compaction: {} })
    await sensing.clock.advance(20 * MINUTE_MS)
    sensing.store.reset()
    await sensing.clock.advance(4 * HOUR_MS)
    expect(sensing.store.count('create', 'put')).toBeLessThanOrEqual(240)
    expect(sensing.store.count('create', 'put'), 'tables are published too').toBeGreaterThan(sensing.writes)
  })

  test('[A44] are shown before they are on record, and are on record before a reset of the cursor', async () => {
    const sensing = await Sensing.open([{ ...files, config: every(10 * SECOND_MS) }])
    const { sensors } = sensing.server.api
    await sensing.clock.advance(25 * SECOND_MS)
    expect(sensing.evals()).toEqual([])
    expect(await sensors.get('inbox')).toMatchObject({ state: null, unrecorded_polls: { count: 3 } })
    await sensing.soon(sensors.resetCursor('inbox', { cursor: '"b"' }, 'ana'))
    expect(sensing.evals()).toMatchObject([{ status: 'no_new_data', eval_count: 3, state_version: 0 }])
    expect(await sensors.get('inbox')).toMatchObject({ state: { cursor: '"b"' }, unrecorded_polls: null })
  })

  test('[A23] are on record before the next one that finds something, and when the server closes', async () => {
    const sensing = await Sensing.open([{ ...files, config: every(10 * SECOND_MS) }])
    await sensing.clock.advance(25 * SECOND_MS)
    expect(sensing.evals()).toEqual([])
    counting(sensing)
    await sensing.clock.advance(10 * SECOND_MS)
    expect(sensing.evals().map(({ status, eval_count }) => [status, eval_count])).toEqual([
      ['no_new_data', 3],
      ['triggered', 1],
    ])
    sensing.evaluator.script = () => ({})
    await sensing.clock.advance(25 * SECOND_MS)
    await sensing.soon(sensing.server.close())
    await sensing.start()
    expect(sensing.evals().find(({ state_version }) => state_version === 1)).toMatchObject({ eval_count: 3 })
  })
})

test('[A44] where automation is off, or before the project is loaded, nothing is polled and nothing recorded', async () => {
  const sensing = await Sensing.open([files])
  sensing.kill()
  sensing.automation = false
  await sensing.start()
  const before = sensing.evaluator.asked.length
  await sensing.clock.advance(HOUR_MS)
  expect(sensing.evaluator.asked).toHaveLength(before)
  await expect(sensing.hub.poll(sensing.idOf(), 'ana')).rejects.toMatchObject({ code: 'automation_off' })
})
