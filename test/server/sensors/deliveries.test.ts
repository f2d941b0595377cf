import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { evaluationText } from '../../../src/cli/show-dev.ts'
import { AutomationPaused } from '../../../src/domain/automation/automation-paused.event.ts'
import { SensorMessageReplayed } from '../../../src/domain/sensors/sensor-message-replayed.event.ts'
import { SensorPaused } from '../../../src/domain/sensors/sensor-paused.event.ts'
import { MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { every, hook, oneRun, Sensing } from './sensing.ts'

const inbox = { name: 'inbox', config: hook }
const change = { request_id: 'r1', changed_by: 'ana', reason: 'the shop is closed' }

/** A sensor whose code takes a second and asks for a run. */
async function slow(options: Parameters<typeof Sensing.open>[1] = {}): Promise<Sensing> {
  const sensing = await Sensing.open([inbox], options)
  sensing.evaluator.script = () => ({ ms: SECOND_MS, report: oneRun() })
  return sensing
}

describe('a message', () => {
  test.each([
    ['in memory', {}],
    ['in files', { compaction: { limits: { max_count: 1 } } }],
  ])(
    '[A20] that is delivered 100 times at once, and again after a restart with what is known of it %s, makes one run, and each delivery is accepted',
    async (_, options) => {
      const sensing = await slow(options)
      const answers = await sensing.soon(Promise.all(Array.from({ length: 100 }, () => sensing.deliver('m1', { order: 1 }))))
      const [first] = answers
      expect(first).toMatchObject({
        kind: 'accepted',
        run_ids: [expect.stringMatching(/^run_/)],
        repeated: false,
        conflict: false,
      })
      for (const answer of answers) expect(answer).toEqual(first)
      await sensing.server.orchestrator.publish()
      for (const end of ['close', 'kill'] as const) {
        if (end === 'close') await sensing.soon(sensing.server.close())
        else sensing.kill()
        await sensing.start()
        const again = await sensing.soon(Promise.all(Array.from({ length: 100 }, () => sensing.deliver('m1', { order: 1 }))))
        for (const answer of again) expect(answer).toEqual({ ...first, repeated: true })
      }
      expect(sensing.evaluator.asked).toHaveLength(1)
      const written = (await sensing.segments()).flat().map(({ event_type }) => event_type)
      expect(written.filter((type) => type === 'SensorEvaluated' || type === 'RunRequested')).toEqual([
        'SensorEvaluated',
        'RunRequested',
      ])
    },
  )

  test('[A1] is recorded with its run request and the plan of the run in one segment, before it is answered', async () => {
    const sensing = await slow()
    await sensing.answered('m1')
    const segment = (await sensing.segments()).find((events) =>
      events.some(({ event_type }) => event_type === 'SensorEvaluated'),
    )
    const types = segment?.map(({ event_type }) => event_type)
    expect(types?.slice(0, 3)).toEqual(['SensorEvaluated', 'RunRequested', 'PlanCreated'])
  })

  test('[A40] shares its segment with others that are delivered at the same time', async () => {
    const sensing = await slow()
    const isSegment = ({ method, path }: StoreRequest) => method === 'create' && path.startsWith(sensing.paths.ledger)
    sensing.before = (request) => (isSegment(request) ? sensing.clock.sleep(20) : undefined)
    await sensing.soon(Promise.all(Array.from({ length: 100 }, (_, i) => sensing.deliver(`m${i}`))))
    expect(sensing.runs()).toHaveLength(100)
    const evaluated = (await sensing.segments()).filter((events) =>
      events.some(({ event_type }) => event_type === 'SensorEvaluated'),
    )
    expect(evaluated.length).toBeLessThan(10)
  })

  test('[A20][A27] that fails is tried again when it is delivered again, is dead after so many tries, and can be replayed', async () => {
    const sensing = await Sensing.open([{ ...inbox, max_tries: 2 }])
    sensing.evaluator.script = () => ({ ms: 100, report: { outcome: 'error', error: 'no such order' } })
    const [one, joined] = await sensing.soon(Promise.all([sensing.deliver('m1'), sensing.deliver('m1')]))
    expect(one).toEqual({ kind: 'failed', message_id: 'm1', error: 'no such order', try: 1, max_tries: 2 })
    expect(joined, 'a delivery that waits for the result of a try is no try').toEqual(one)
    const dead = { kind: 'dead', message_id: 'm1', error: 'no such order' }
    expect(await sensing.answered('m1')).toEqual(dead)
    expect(await sensing.answered('m1')).toEqual(dead)
    expect(sensing.evaluator.asked).toHaveLength(2)
    expect(sensing.state()).toMatchObject({ dead_letters: 1, status: 'ERROR' })
    const replay = { sensor_id: sensing.idOf(), message_id: 'm1', request_id: 'r1', requested_by: 'ana' }
    await sensing.write(SensorMessageReplayed, replay)
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'failed', try: 1 })
    sensing.evaluator.script = () => ({ report: oneRun() })
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'accepted', repeated: false })
    expect(sensing.evals().map((row) => [row.try, row.status])).toEqual([
      [1, 'error'],
      [2, 'error'],
      [3, 'error'],
      [4, 'triggered'],
    ])
  })

  test('[A27][A51] that does not fit is a failed try on record that names the field, and dead after so many', async () => {
    const sensing = await Sensing.open([{ ...inbox, max_tries: 2 }])
    const report = { outcome: 'error', error: 'order: expected a number', unfit_field: 'order' } as const
    sensing.evaluator.script = () => ({ ms: 100, report })
    const [one, joined] = await sensing.soon(Promise.all([sensing.deliver('m1'), sensing.deliver('m1')]))
    expect(one).toEqual({
      ...{ kind: 'failed', message_id: 'm1', try: 1, max_tries: 2 },
      error: report.error,
      unfit_field: 'order',
    })
    expect(joined).toEqual(one)
    expect(sensing.state(), 'the sensor itself is in order').toMatchObject({
      last_error: null,
      status: 'ACTIVE',
      backoff_until: null,
    })
    expect(await sensing.answered('m1'), 'Pub/Sub delivers until it gets 2xx').toMatchObject({ kind: 'dead' })
    expect(sensing.evals().map(({ status }) => status)).toEqual(['error', 'error'])
  })

  test('[A28] with the id of an accepted one and another body is a conflict on record, once', async () => {
    const sensing = await slow()
    const [first, other] = await sensing.soon(Promise.all([sensing.deliver('m1', { n: 1 }), sensing.deliver('m1', { n: 2 })]))
    expect(first).toMatchObject({ kind: 'accepted', conflict: false })
    expect(other).toEqual({ ...first, repeated: true, conflict: true })
    expect(await sensing.answered('m1', { n: 2 })).toEqual(other)
    const events = (await sensing.segments()).flat().filter(({ event_type }) => event_type === 'SensorMessageConflicted')
    expect(events).toHaveLength(1)
    expect(sensing.runs()).toHaveLength(1)
  })

  test('[A31] whose result fits into no event, or asks for what does not exist, is an error on record', async () => {
    const sensing = await Sensing.open([inbox])
    const reports = [
      { ...oneRun(), runs: [{ asset_selection: ['nothing'] }] },
      { ...oneRun(), runs: [{ asset_selection: ['orders'], labels: { 'a\nb': 'x' } }] },
      { outcome: 'condition', holds: true } as const,
      { outcome: 'timed_out' } as const,
    ]
    for (const [n, report] of reports.entries()) {
      sensing.evaluator.script = () => ({ report })
      expect(await sensing.answered(`m${n}`), JSON.stringify(report)).toMatchObject({ kind: 'failed', try: 1 })
    }
    expect(sensing.runs()).toEqual([])
    expect(sensing.evals().map(({ status }) => status)).toEqual(reports.map(() => 'error'))
  })

  test('[A31] may add a key to a dynamic set and ask for a run of it, which is planned and made', async () => {
    const profiles = {
      asset_key: 'profiles',
      kind: 'asset',
      partitions: { type: 'dynamic', name: 'customers' },
    } as const
    const sensing = await Sensing.open([inbox], { assets: [profiles] })
    const runs = (partition: string) => [{ asset_selection: ['profiles'], partition_selection: [partition] }]
    const acme = [{ set_name: 'customers', keys: ['acme'] }]
    const report = { outcome: 'requests', runs: runs('acme'), partition_keys_added: acme } as const
    sensing.evaluator.script = () => ({ report })
    const message = { id: 'm1', data: {}, attributes: {}, published_at: null }
    expect(await sensing.soon(sensing.hub.dryRun(sensing.idOf(), message))).toEqual(report)
    const accepted = await sensing.answered('m1')
    expect(accepted).toMatchObject({ kind: 'accepted', run_ids: [expect.any(String)] })
    await sensing.clock.advance(10 * SECOND_MS)
    const { run } = await sensing.server.api.runs.get(String(Reflect.get(accepted, 'run_ids')))
    expect(run).toMatchObject({ state: 'SUCCEEDED', partition_selection: ['acme'], tasks_succeeded: 1 })

    sensing.evaluator.script = () => ({ report: { outcome: 'requests', runs: runs('acme'), partition_keys_removed: acme } })
    expect(await sensing.answered('m2'), 'a key that it removes is gone for its runs too').toMatchObject({ kind: 'failed' })
    sensing.evaluator.script = () => ({ report: { ...report, partition_keys_removed: acme } })
    expect(await sensing.answered('m3'), 'added wins over removed').toMatchObject({ kind: 'accepted' })
  })

  test('[A41] of which nothing is known because the server closes is not recorded', async () => {
    const sensing = await Sensing.open([inbox])
    sensing.evaluator.script = () => ({ report: { outcome: 'cancelled' } })
    await expect(sensing.answered('m1')).rejects.toMatchObject({ kind: 'unavailable' })
    expect(sensing.evals()).toEqual([])
    sensing.evaluator.script = () => ({ ms: 100, report: oneRun() })
    const delivered = sensing.deliver('m1').catch((error: unknown) => error)
    await sensing.soon(sensing.server.close())
    expect(await sensing.soon(delivered)).toMatchObject({ kind: 'unavailable' })
    await sensing.start()
    expect(sensing.evals()).toEqual([])
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'accepted' })
  })

  test('[A30] to a sensor without code asks for its selection, under the key that it names', async () => {
    const config = { ...hook, fixed: { key: '/order' } }
    const sensing = await Sensing.open([{ name: 'inbox', config, has_code: false, asset_selection: ['orders'] }])
    const first = await sensing.answered('m1', { order: 7 })
    expect(await sensing.answered('m2', { order: 7 })).toMatchObject({ run_ids: Reflect.get(first, 'run_ids') })
    const missing = { kind: 'failed', error: expect.stringContaining('/order'), unfit_field: 'order' }
    expect(await sensing.answered('m3', {})).toMatchObject(missing)
    expect(sensing.evaluator.asked).toEqual([])
    expect(sensing.runs()).toHaveLength(1)
  })
})

describe('a sensor', () => {
  test('[A33] that is paused, removed or unknown is not evaluated, and the sender is told why', async () => {
    const sensing = await slow()
    await sensing.write(SensorPaused, { sensor_id: sensing.idOf(), ...change })
    const paused = { kind: 'standstill', code: 'paused', by: 'ana', reason: 'the shop is closed' }
    expect(await sensing.answered('m1')).toEqual(paused)
    await sensing.load([])
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'standstill', code: 'removed' })
    await sensing.load([{ ...inbox, enabled: false }])
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'standstill', code: 'disabled' })
    await expect(sensing.deliver('m1', {}, { sensor_id: 'other' })).rejects.toMatchObject({ code: 'no_such_sensor' })
    expect(sensing.evaluator.asked).toEqual([])
  })

  test('[A33] is not evaluated while all automation is paused, nor where it is off', async () => {
    const sensing = await slow()
    await sensing.write(AutomationPaused, change)
    expect(await sensing.answered('m1')).toMatchObject({ kind: 'standstill', code: 'automation_paused', by: 'ana' })
    const off = await slow()
    off.kill()
    off.automation = false
    await off.start()
    expect(await off.answered('m1')).toMatchObject({ kind: 'standstill', code: 'automation_off' })
    expect([...sensing.evaluator.asked, ...off.evaluator.asked]).toEqual([])
  })

  test('is heard of in servo dev: every message and every poll that found something or failed', async () => {
    const files = { name: 'files', config: every(MINUTE_MS) }
    const sensing = await Sensing.open([inbox, files])
    const heard: unknown[] = []
    sensing.server.feed.listen((news) => {
      if (news.type === 'evaluation') heard.push([news.sensor.sensor_name, news.evaluation.status, news.run_ids.length])
    })
    sensing.evaluator.script = ({ of }) => ({ report: of === 'poll' ? { outcome: 'requests', runs: [] } : oneRun() })
    await sensing.answered('m1')
    await sensing.answered('m1')
    await sensing.clock.advance(3 * MINUTE_MS)
    expect(heard).toEqual([['inbox', 'triggered', 1]])
    sensing.evaluator.script = () => ({ report: { outcome: 'error', error: 'away' } })
    await sensing.clock.advance(MINUTE_MS)
    sensing.evaluator.script = () => ({ report: { outcome: 'requests', runs: [], cursor: '"1"' } })
    await sensing.clock.advance(MINUTE_MS)
    expect(heard.slice(1, 2)).toEqual([['files', 'error', 0]])
    expect(heard.at(-1)).toEqual(['files', 'no_new_data', 0])
  })

  test('[A42] lets 1,000 deliveries wait, and refuses more as unavailable', async () => {
    const sensing = await slow()
    const waiting = Array.from({ length: 1_000 }, () => sensing.deliver('m1'))
    await expect(sensing.deliver('m2')).rejects.toMatchObject({ kind: 'unavailable', code: 'too_many_deliveries' })
    const answers = await sensing.soon(Promise.all(waiting))
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['accepted']))
    expect(await sensing.answered('m2')).toMatchObject({ kind: 'accepted' })
  })

  test('[A42] lets bodies of 16 MiB wait, whatever the sensor, and refuses more as unavailable', async () => {
    const sensing = await slow()
    const delivery = (id: string, body_size: number) => ({
      ...{ sensor_id: sensing.idOf(), body_hash: id, body_size },
      message: { id, data: {}, attributes: {}, published_at: null },
    })
    const waiting = Array.from({ length: 16 }, (_, n) => sensing.hub.deliver(delivery(`m${n}`, 2 ** 20)))
    const refused = { kind: 'unavailable', code: 'too_many_deliveries' }
    await expect(sensing.hub.deliver(delivery('late', 1))).rejects.toMatchObject(refused)
    const answers = await sensing.soon(Promise.all(waiting))
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['accepted']))
    expect(await sensing.soon(sensing.hub.deliver(delivery('late', 1)))).toMatchObject({ kind: 'accepted' })
  })

  test('[A43] can be tried without a record: the report says which runs it would ask for, or why they could not be', async () => {
    const sensing = await slow()
    const before = await sensing.segments()
    const message = { id: 'm1', data: {}, attributes: {}, published_at: null }
    const dry = () => sensing.soon(sensing.hub.dryRun(sensing.idOf(), message))
    expect(await dry()).toEqual(oneRun())
    sensing.evaluator.script = () => ({ report: { ...oneRun(), runs: [{ asset_selection: ['nothing'] }] } })
    expect(await dry()).toMatchObject({ outcome: 'error', error: expect.stringContaining('nothing') })
    await expect(sensing.hub.dryRun(sensing.idOf())).rejects.toMatchObject({ code: 'message_missing' })
    expect(await sensing.segments()).toEqual(before)
  })

  test('[A29] is told which runs are new, which are those of an earlier request with the key, and which request is a conflict', async () => {
    const sensing = await Sensing.open([inbox])
    const shown: string[] = []
    const heard: unknown[] = []
    sensing.server.feed.listen((change) => {
      if (change.type !== 'evaluation') return
      heard.push(change.runs.map(({ created, conflict }) => [created, conflict]))
      shown.push(stripVTControlCharacters(evaluationText(change)))
    })
    const ask = async (message: string, runs: readonly object[]) => {
      sensing.evaluator.script = () => ({
        report: { outcome: 'requests', runs: runs.map((run) => ({ asset_selection: ['orders'], ...run })) },
      })
      return await sensing.answered(message)
    }
    const same = { run_key: `sensor:${sensing.idOf()}:key:same`, key: 'same', requested_at: expect.any(String) }
    const first = await ask('m1', [{ key: 'same' }])
    expect(first).toMatchObject({ runs: [{ ...same, created: true, conflict: false }] })
    const run_ids = Reflect.get(first, 'run_ids')
    expect(await ask('m2', [{ key: 'same' }])).toMatchObject({ run_ids, runs: [{ ...same, created: false, conflict: false }] })
    const mixed = [{ created: false, conflict: true }, { created: true }]
    expect(await ask('m3', [{ key: 'same', labels: { a: 'b' } }, {}])).toMatchObject({ runs: mixed })
    expect(await sensing.answered('m1'), 'what it made then').toEqual({ ...first, repeated: true })
    expect(heard).toEqual([
      [[true, false]],
      [[false, false]],
      [
        [false, true],
        [true, false],
      ],
    ])
    const used = /no new run: key same was used by \w+ at .*\d/
    expect(shown).toEqual([
      expect.stringMatching(/^triggered {2}message m1: \w+$/),
      expect.stringMatching(new RegExp(`^triggered {2}message m2: ${used.source}$`)),
      expect.stringMatching(/message m3: \w+, no new run: key same was used for another request by .* \(servo conflicts\)$/),
    ])
    sensing.evaluator.script = () => ({
      report: { outcome: 'requests', runs: [], partition_keys_added: [{ set_name: 'customers', keys: ['acme'] }] },
    })
    await sensing.answered('m4')
    expect(shown.at(-1)).toBe('no_new_data  message m4: no run requested, added 1 key to customers')
    const { evals } = await sensing.server.api.sensors.evals('inbox', { limit: 50 })
    expect(evals.map(({ runs }) => runs.map(({ created }) => created))).toEqual([[], [false, true], [false], [true]])
  })

  test('[A29] that asks again for the key of a run that failed gets a rerun of it', async () => {
    const sensing = await Sensing.open([inbox])
    sensing.evaluator.script = () => ({ report: oneRun({ key: 'order 7' }) })
    sensing.workers = () => ({
      result: { outcome: 'FAILED', error: { category: 'user', message: 'it broke', retryable: false } },
    })
    const first = await sensing.answered('m1')
    await sensing.clock.advance(10 * SECOND_MS)
    sensing.workers = () => ({})
    const second = await sensing.answered('m2')
    await sensing.clock.advance(10 * SECOND_MS)
    const third = await sensing.answered('m3')
    const [a, b, c] = [first, second, third].map((answer) => Reflect.get(answer, 'run_ids'))
    expect(b).not.toEqual(a)
    expect(c, 'the rerun succeeded, so it stands').toEqual(b)
    const { run } = await sensing.server.api.runs.get(String(b))
    expect(run.trigger_source_ref).toMatchObject({ type: 'rerun', run_id: String(a) })
  })
})
