import type { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import type { WireDeadLetter } from '../../../src/api/automation/sensor-contract.ts'
import { sensorRoutes } from '../../../src/api/automation/sensor-routes.ts'
import { routerOf } from '../../../src/api/routing/router.ts'
import type { Deliveries, Delivery, DeliveryAnswer } from '../../../src/contract/delivery.ts'
import type { SensorDefinitionInput } from '../../../src/contract/sensor.ts'
import { MaterializationReported } from '../../../src/domain/partitions/materialization-reported.event.ts'
import { sensorHappenings } from '../../../src/domain/sensors/happenings/sensor-happenings.table.ts'
import { SensorDefined } from '../../../src/domain/sensors/sensor-defined.event.ts'
import { SensorEvaluated } from '../../../src/domain/sensors/sensor-evaluated.event.ts'
import { MINUTE_MS, toIso } from '../../../src/lib/time.ts'
import { newEvent } from '../../../src/model/event.ts'
import { knowledgeOf } from '../../../src/server/workspace/knowledge.ts'
import { workspaceApi } from '../../../src/server/workspace/workspace.ts'
import { Led } from '../led.ts'

const webhook = { type: 'webhook', path: 'shop', verify: 'none' } as const
const poll = { type: 'poll', every_ms: 60_000 } as const
const made = { name: 'inbox', config: webhook, asset_selection: ['orders'] }

const RUN = {
  ...{ run_id: 'run_1', run_key: 'sensor:id-hook:key:k', key: 'k', created: true, conflict: false },
  requested_at: '2025-01-15T10:00:00.000Z',
}

/** Answers what the test says, and keeps what it was asked. */
class FakeDeliveries implements Deliveries {
  readonly delivered: Delivery[] = []
  readonly dry: unknown[] = []
  answer: (delivery: Delivery) => DeliveryAnswer = ({ message: { id } }) => ({
    ...{ kind: 'accepted', message_id: id, eval_id: `eval of ${id}`, run_ids: ['run_1'], runs: [RUN] },
    ...{ repeated: false, conflict: false },
  })

  async deliver(delivery: Delivery) {
    this.delivered.push(delivery)
    return this.answer(delivery)
  }
  async dryRun(sensorId: string, message?: Delivery['message']) {
    this.dry.push([sensorId, message?.data])
    return { outcome: 'requests' as const, runs: [{ asset_selection: ['orders'] }] }
  }
  async poll() {
    return { eval_id: null, status: 'no_new_data' }
  }
  polledAt: Deliveries['polledAt'] & object = () => undefined
}

class Desk {
  readonly led: Led
  readonly app: Hono
  readonly deliveries = new FakeDeliveries()

  private constructor(led: Led, isOn: boolean) {
    this.led = led
    const known = knowledgeOf(led.memory, led.server.orchestrator)
    const { feed, orchestrator } = led.server
    const api = workspaceApi(known, {
      runIds: () => ({ id: 's', value: 's' }),
      live: { feed, logs: orchestrator.logs },
      ...(isOn && { deliveries: this.deliveries }),
    })
    this.app = routerOf(sensorRoutes(api.sensors), { callerOf: async () => ({ name: 'ada', role: 'admin' }) })
  }

  static async open({ isOn = true } = {}): Promise<Desk> {
    return new Desk(await Led.open({ assets: [{ asset_key: 'orders', kind: 'asset' }] }, { automation: true }), isOn)
  }

  /** As a load of the project declares it. */
  async declare(name: string, definition: Omit<SensorDefinitionInput, 'name'>): Promise<void> {
    const facts = { sensor_id: `id-${name}`, sensor_name: name, definition_hash: 'h', request_id: 'load' }
    await this.led.server.orchestrator.submit([newEvent(SensorDefined, { ...definition, ...facts, file: 'a.ts', line: 3 })])
  }

  async fail(name: string, message_id: string, tryNumber: number): Promise<void> {
    const trigger_source = { source: 'push' as const, message_id, try: tryNumber, max_tries: 1, body_hash: 'b', body_size: 3 }
    const facts = { sensor_id: `id-${name}`, trigger_source, begun: `${message_id} ${tryNumber}` }
    await this.led.server.orchestrator.submit([
      newEvent(SensorEvaluated, { ...facts, status: 'error', error: 'no such column\nat line 3' }),
    ])
  }

  async ask(method: string, path: string, body?: object) {
    const headers = { 'content-type': 'application/json' }
    const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const response = await this.app.request(`http://127.0.0.1/api/v1/orchestration/sensors${path}`, init)
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server says.
    return { status: response.status, body: (await response.json()) as any }
  }
  get = (path: string) => this.ask('GET', path)
  post = (path: string, body: object = {}) => this.ask('POST', path, body)
}

describe('a sensor without code', () => {
  test('[A53] is made, shown, changed and deleted over the API', async () => {
    const desk = await Desk.open()
    const { status, body } = await desk.post('', { ...made, config: { ...webhook, fixed: { key: '/id' } } })
    expect([status, body.message, body.sensor_name]).toEqual([202, 'sensor made', 'inbox'])
    const shown = (await desk.get('/inbox')).body
    expect(shown).toMatchObject({
      status: 'active',
      status_reason: null,
      address: '/hooks/acme/analytics/shop',
      last_eval: null,
    })
    expect(shown.definition).toMatchObject({ origin: 'api', has_code: false, config: { fixed: { key: '/id' } } })
    expect((await desk.ask('PATCH', '/inbox', { name: 'letters', max_tries: 2 })).body.message).toBe('sensor changed')
    const now = (await desk.get(`/${body.sensor_id}`)).body.definition
    expect(now).toMatchObject({ sensor_name: 'letters', renamed_from: 'inbox', max_tries: 2, config: { path: 'shop' } })
    expect((await desk.ask('DELETE', '/letters')).body.message).toBe('sensor deleted')
    expect((await desk.get('/letters')).body.status).toBe('removed')
    expect((await desk.get('')).body).toEqual({ sensors: [], next_cursor: null })
    const refused = await desk.post('/letters/pause')
    expect([refused.status, refused.body]).toMatchObject([409, { current: 'removed', requested: 'paused' }])
  })

  test.each([
    ['POST', '', { ...made, config: poll }, 400, 'bad_sensor', 'only code can poll'],
    ['POST', '', { ...made, asset_selection: [] }, 400, 'bad_sensor', 'says what it runs'],
    ['POST', '', { ...made, asset_selection: ['ordrs'] }, 400, 'bad_selection', 'asset "ordrs" not found'],
    ['POST', '', { ...made, config: { ...webhook, verify: 'github' } }, 400, 'bad_sensor', 'name the secret'],
    ['POST', '', { ...made, config: { ...webhook, fixed: { key: 'id' } } }, 400, 'bad_body', 'JSON pointer'],
    ['POST', '', { ...made, has_code: true }, 400, 'bad_body', 'has_code'],
    ['POST', '', { ...made, name: 'files' }, 409, 'sensor_exists', 'sensor files already exists'],
    [
      'POST',
      '',
      { ...made, config: { ...webhook, path: 'taken' } },
      409,
      'path_taken',
      'the path taken is already used by hook',
    ],
    ['PATCH', '/files', { max_tries: 1 }, 409, 'declared_in_code', 'files is declared in the project code'],
    ['DELETE', '/files', undefined, 409, 'declared_in_code', 'files is declared in the project code'],
    ['GET', '/fils', undefined, 404, 'no_such_sensor', 'fils'],
    ['GET', '/files/evals?cursor=x', undefined, 400, 'bad_cursor', 'cursor'],
    ['GET', '/files/evals?limit=1001', undefined, 400, 'bad_query', 'limit'],
    ['POST', '/hook/reset-cursor', { cursor: null }, 400, 'no_cursor', 'webhook'],
    ['POST', '/files/reset-cursor', { cursor: '2025-' }, 400, 'bad_cursor_text', 'JSON'],
    ['POST', '/files/pause?expected_state_version=', {}, 400, 'bad_query', 'expected_state_version'],
    ['POST', '/files/evaluate', { data: 1 }, 400, 'takes_no_message', 'files polls'],
    ['POST', '/hook/evaluate', {}, 400, 'data_missing', 'hook needs a message to evaluate'],
    ['POST', '/hook/dead-letters/m1/replay', {}, 404, 'no_such_message', 'm1'],
  ])('[A53] %s %s %j is refused with %d %s and records nothing', async (method, path, body, status, code, words) => {
    const desk = await Desk.open()
    await desk.declare('files', { config: poll })
    await desk.declare('hook', { config: { ...webhook, path: 'taken' } })
    const before = desk.led.server.orchestrator.loop.compactor.fold.unpublished
    const answer = await desk.ask(method, path, body)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(answer.body.detail).toContain(words)
    expect(desk.led.server.orchestrator.loop.compactor.fold.unpublished).toBe(before)
  })

  test('[A54] that is made again by the same request is the first one, also at the same time; by another it is refused', async () => {
    const desk = await Desk.open()
    const body = { ...made, request_id: 'once' }
    const [first, twin] = await Promise.all([desk.post('', body), desk.post('', body)])
    expect(first?.body.accepted_event_id).toEqual(expect.any(String))
    expect(twin).toEqual(first)
    await desk.led.clock.advance(MINUTE_MS)
    expect(await desk.post('', body)).toEqual(first)
    expect((await desk.post('', { ...body, max_tries: 1 })).body).toMatchObject({ status: 422, code: 'idempotency_key_reused' })
    const rivals = await Promise.all([
      desk.post('', { ...made, name: 'two', config: { ...webhook, path: 'two' } }),
      desk.post('', made),
    ])
    expect(rivals.map(({ status }) => status)).toEqual([202, 409])
    await desk.ask('PATCH', '/inbox', { name: 'new', request_id: 'p1' })
    await desk.ask('PATCH', '/new', { name: 'newer', request_id: 'p2' })
    await desk.ask('PATCH', '/newer', { name: 'new', request_id: 'p1' })
    expect((await desk.get('/newer')).status, 'a repetition takes nothing back').toBe(200)
  })
})

describe('a change of a sensor', () => {
  test('[A54] gets its first answer again, whatever has happened since', async () => {
    const desk = await Desk.open()
    await desk.declare('files', { config: poll })
    const paused = await desk.post('/files/pause', { request_id: 'r1', reason: 'too loud' })
    await desk.led.clock.advance(MINUTE_MS)
    expect((await desk.post('/files/pause')).body).toMatchObject({
      accepted_event_id: null,
      message: 'sensor was already paused',
    })
    expect((await desk.get('/files')).body).toMatchObject({
      ...{ status: 'paused', status_reason: 'paused by ada: too loud', next_poll_at: null },
    })
    await desk.post('/files/resume')
    expect(await desk.post('/files/pause', { request_id: 'r1' })).toEqual(paused)
    expect((await desk.get('/files')).body.status).toBe('active')
    const reset = await desk.post('/files/reset-cursor?expected_state_version=0', { cursor: '"a"', request_id: 'r2' })
    expect(await desk.post('/files/reset-cursor?expected_state_version=0', { cursor: '"a"', request_id: 'r2' })).toEqual(reset)
    expect((await desk.get('/files')).body.state).toMatchObject({ cursor: '"a"', state_version: 1, cursor_reset_by: 'ada' })
    await desk.post('/files/reset-cursor', { cursor: ' null' })
    expect((await desk.get('/files')).body.state, 'the JSON of null is no cursor').toMatchObject({ cursor: null })
  })

  test('[A55] that expects another version of its state is refused, and is told which one there is', async () => {
    const desk = await Desk.open()
    await desk.declare('files', { config: poll })
    const both = await Promise.all(
      ['"a"', '"b"'].map((cursor) => desk.post('/files/reset-cursor?expected_state_version=0', { cursor })),
    )
    expect(both.map(({ status }) => status)).toEqual([202, 409])
    expect(both[1]?.body).toMatchObject({ code: 'state_changed', expected: 0, actual: 1 })
    for (const change of ['pause', 'resume'])
      expect((await desk.post(`/files/${change}?expected_state_version=0`)).body).toMatchObject({ status: 409, actual: 1 })
    await desk.post('', made)
    for (const [method, body] of [['PATCH', { max_tries: 2 }], ['DELETE']] as const) {
      const refused = await desk.ask(method, '/inbox?expected_state_version=7', body)
      expect(refused.body, method).toMatchObject({ status: 409, code: 'state_changed', expected: 7, actual: 0 })
      expect((await desk.ask(method, '/inbox?expected_state_version=0', body)).status, method).toBe(202)
    }
    expect((await desk.post('/files/pause?expected_state_version=1')).status).toBe(202)
    expect((await desk.get('/files')).body.state.cursor).toBe('"a"')
  })
})

describe('what is known of a sensor', () => {
  test('[A53] when it is polled next, from what is on record and from this process', async () => {
    const desk = await Desk.open()
    await desk.declare('files', { config: poll })
    const now = desk.led.clock.now()
    expect((await desk.get('/files')).body.next_poll_at, 'it is due').toBe(toIso(now))
    desk.deliveries.polledAt = () => now
    expect((await desk.get('/files')).body.next_poll_at).toBe(toIso(now + MINUTE_MS))
    await desk.led.server.api.schedules.switchAutomation('paused', {}, 'bob')
    const { next_poll_at, status_reason } = (await desk.get('')).body.sensors[0]
    expect([next_poll_at, status_reason]).toEqual([null, 'all automation was paused by bob'])
  })

  test('[A53] its evaluations and dead letters, in pages, the newest first', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    for (let i = 1; i <= 5; i++) {
      await desk.fail('hook', `m${i}`, 1)
      await desk.led.clock.advance(1_000)
    }
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { evals: { message_id: string }[]; next_cursor: string | null } = (
        await desk.get(`/hook/evals?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      ).body
      seen.push(...page.evals.map((one) => one.message_id))
      cursor = page.next_cursor
    }
    expect(seen).toEqual(['m5', 'm4', 'm3', 'm2', 'm1'])
    expect((await desk.get('/hook/evals?status=triggered')).body.evals).toEqual([])
    const letters = (await desk.get('/hook/dead-letters?limit=3')).body
    expect(letters.dead_letters.map((one: { message_id: string }) => one.message_id)).toEqual(['m5', 'm4', 'm3'])
    expect(letters.next_cursor).toEqual(expect.any(String))
    const since = letters.dead_letters[1].dead_since
    expect((await desk.get(`/hook/dead-letters?since=${since}`)).body.dead_letters).toHaveLength(2)
    expect((await desk.get('/hook')).body).toMatchObject({
      status: 'error',
      status_reason: 'its last 5 evaluations failed',
      state: { dead_letters: 5, last_error: 'no such column\nat line 3' },
      last_eval: { message_id: 'm5', status: 'error', run_ids: [] },
    })
  })
})

describe('an evaluation by hand', () => {
  test('[A56] delivers a message with an id of its own, or one that follows from the request', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    const { status, body } = await desk.post('/hook/evaluate', { data: { id: 7 }, attributes: { a: 'b' } })
    expect([status, body]).toMatchObject([
      202,
      { status: 'triggered', run_ids: ['run_1'], message: 'message accepted: 1 new run' },
    ])
    expect(body.message_id).toMatch(/^manual_[0-9A-Z]{26}$/)
    expect(desk.deliveries.delivered).toMatchObject([
      {
        sensor_id: 'id-hook',
        body_size: 8,
        body_hash: expect.any(String),
        requested_by: 'ada',
        message: { attributes: { a: 'b' } },
      },
    ])
    expect((await desk.post('/hook/evaluate', { request_id: 'x', data: null })).body.message_id).toBe('manual_x')
    desk.deliveries.answer = ({ message: { id } }) => ({
      ...{ kind: 'accepted', message_id: id, eval_id: 'e', run_ids: ['run_1'], runs: [{ ...RUN, created: false }] },
      ...{ repeated: false, conflict: false },
    })
    expect((await desk.post('/hook/evaluate', { message_id: 'm1', data: null })).body).toMatchObject({
      message_id: 'm1',
      message: 'message accepted: no new run',
      runs: [{ run_id: 'run_1', created: false }],
    })
    expect(desk.deliveries.delivered[2]).toMatchObject({ body_hash: null, body_size: null, message: { data: null } })
  })

  test('[A56] as a dry run records nothing, also while the sensor is paused', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    await desk.post('/hook/pause')
    const { status, body } = await desk.post('/hook/evaluate', { data: 1, dry_run: true })
    expect([status, body.report.outcome, desk.deliveries.dry]).toEqual([200, 'requests', [['id-hook', 1]]])
    const refused = (await desk.post('/hook/evaluate', { data: 1 })).body
    expect(refused).toMatchObject({ status: 409, code: 'sensor_paused', current: 'paused', requested: 'evaluated' })
    expect(desk.deliveries.delivered).toEqual([])
  })

  test('[A56] tells why it failed, that the message is dead, or that nothing is evaluated here', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    desk.deliveries.answer = ({ message: { id } }) => ({
      kind: 'failed',
      message_id: id,
      error: 'no column',
      try: 2,
      max_tries: 5,
    })
    expect((await desk.post('/hook/evaluate', { data: 1 })).body).toMatchObject({ status: 'error', error: 'no column', try: 2 })
    desk.deliveries.answer = ({ message: { id } }) => ({ kind: 'dead', message_id: id, error: 'no column' })
    expect((await desk.post('/hook/evaluate', { message_id: 'm', data: 1 })).body).toMatchObject({
      ...{ status: 409, code: 'dead_letter' },
    })
    const off = await Desk.open({ isOn: false })
    await off.declare('hook', { config: webhook })
    expect((await off.post('/hook/evaluate', { data: 1 })).body).toMatchObject({ status: 503, code: 'automation_off' })
  })

  test('[A56] of a sensor that polls is a poll, and of one that watches assets needs what happened', async () => {
    const desk = await Desk.open()
    await desk.declare('files', { config: poll })
    await desk.declare('watch', { config: { type: 'asset', assets: ['orders'] } })
    expect((await desk.post('/files/evaluate')).body).toMatchObject({ status: 'no_new_data', message_id: null, eval_id: null })
    const refused = (await desk.post('/watch/evaluate')).body
    expect(refused).toMatchObject({ status: 400, code: 'data_missing', field: 'data' })
    expect(refused.hint).toContain(`servo sensors send watch --data '{"type":"materialized","asset_key":"orders"`)
  })

  test('[A56] of a dead letter needs its data, because bodies are not kept; without, it waits for its sender', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    for (const message of ['a/1', 'b']) await desk.fail('hook', message, 1)
    const waits = await desk.post('/hook/dead-letters/a%2F1/replay', { request_id: 'r1' })
    expect([waits.status, waits.body]).toMatchObject([202, { message_id: 'a/1', evaluation: null }])
    expect(waits.body.message).toBe(
      'message replayed: a/1 is tried again when its sender delivers it. Servo does not keep its body: to try it now, pass --data.',
    )
    expect(await desk.post('/hook/dead-letters/a%2F1/replay', { request_id: 'r1' })).toEqual(waits)
    expect((await desk.post('/hook/dead-letters/a%2F1/replay')).body).toMatchObject({ status: 409, current: 'failing' })
    expect(desk.deliveries.delivered).toEqual([])
    const now = (await desk.post('/hook/dead-letters/b/replay', { data: { id: 1 } })).body
    expect(now.evaluation).toMatchObject({ status: 'triggered', message_id: 'b', run_ids: ['run_1'] })
    expect((await desk.get('/hook/dead-letters')).body.dead_letters).toEqual([])
    expect((await desk.get('/hook')).body.state.dead_letters).toBe(0)
  })

  test('[A56] of a message that failed and has tries left needs its data too, and is repeated by the same request', async () => {
    const desk = await Desk.open()
    await desk.declare('hook', { config: webhook })
    await desk.fail('hook', 'm1', 1)
    await desk.fail('hook', 'm2', 1)
    await desk.post('/hook/dead-letters/m1/replay')
    const refused = (await desk.post('/hook/dead-letters/m1/replay')).body
    expect(refused).toMatchObject({ status: 409, code: 'not_a_dead_letter', current: 'failing' })
    expect(refused.hint).toContain('servo sensors replay hook m1 --data')
    const failed = async (query: string) =>
      (await desk.get(`/hook/dead-letters${query}`)).body.dead_letters.map((one: WireDeadLetter) => [
        one.message_id,
        one.status,
      ])
    expect(await failed('')).toEqual([['m2', 'dead']])
    expect(await failed('?status=all')).toEqual([
      ['m2', 'dead'],
      ['m1', 'failing'],
    ])
    const now = await desk.post('/hook/dead-letters/m1/replay', { data: { id: 1 }, request_id: 'now' })
    expect([now.status, now.body.message]).toEqual([202, 'message replayed: message accepted: 1 new run'])
    expect((await desk.post('/hook/dead-letters/m1/replay', { data: { id: 1 }, request_id: 'now' })).status).toBe(202)
    expect(desk.deliveries.delivered.map(({ message }) => message.id)).toEqual(['m1', 'm1'])
  })

  test('[A56] of something that happened here needs no data: it is tried again at once, or when the sensor has rested', async () => {
    const desk = await Desk.open()
    await desk.declare('watch', { config: { type: 'asset', assets: ['orders'] } })
    const reported = { report_id: 'r', asset_key: 'orders', materialized_at: toIso(desk.led.clock.now()), reported_by: 'ada' }
    await desk.led.server.orchestrator.submit([newEvent(MaterializationReported, reported)])
    const [happening] = [...desk.led.server.orchestrator.readable.state.hot(sensorHappenings).all()]
    const id = happening?.message_id ?? ''
    await desk.fail('watch', id, 1)
    const replay = `/watch/dead-letters/${encodeURIComponent(id)}/replay`
    expect((await desk.post(replay)).body.message).toMatch(/tried again at 20\S+, because the sensor waits after errors/)
    expect((await desk.post(replay)).body.hint).toContain('Servo will try it again by itself.')
    await desk.fail('watch', id, 2)
    await desk.post('/watch/resume')
    expect((await desk.post(replay)).body.message).toBe('message replayed: it is tried again at once')
  })
})
