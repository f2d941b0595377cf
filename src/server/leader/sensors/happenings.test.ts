import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Deliveries, Delivery } from '../../../contract/delivery.ts'
import { AutomationPaused } from '../../../domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../../domain/automation/automation-resumed.event.ts'
import { MaterializationReported } from '../../../domain/partitions/materialization-reported.event.ts'
import { evalIdOf } from '../../../domain/sensors/evaluation-ids.ts'
import { sensorHappenings } from '../../../domain/sensors/happenings/sensor-happenings.table.ts'
import { deliveryOf } from '../../../domain/sensors/messages.ts'
import { SensorDefined } from '../../../domain/sensors/sensor-defined.event.ts'
import { SensorEvaluated } from '../../../domain/sensors/sensor-evaluated.event.ts'
import { SensorMessageReplayed } from '../../../domain/sensors/sensor-message-replayed.event.ts'
import { sensorMessages } from '../../../domain/sensors/sensor-messages.table.ts'
import { SensorPaused } from '../../../domain/sensors/sensor-paused.event.ts'
import { SensorResumed } from '../../../domain/sensors/sensor-resumed.event.ts'
import { ServoError } from '../../../lib/error.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import { SensorBench } from '../../../testing/sensor-bench.ts'
import { VirtualClock } from '../../../testing/virtual-clock.ts'
import { Happenings } from './happenings.ts'

const MAX_TRIES = 3
type Outcome = 'ok' | 'error' | 'crash before the record' | 'crash after the record' | 'unavailable'

/** A leader with its durable state, sensors that take a second, and a hub that records what they say. */
class Leader {
  readonly clock = new VirtualClock()
  readonly bench = new SensorBench()
  /** Each delivery that was begun: `sensor message@second`. */
  readonly begun: string[] = []
  readonly delivered: Delivery[] = []
  readonly troubles: unknown[] = []
  /** The outcomes of the next evaluations; then all succeed. */
  readonly outcomes: Outcome[] = []
  readonly #started = this.clock.now()
  atOnce = 0
  mostAtOnce = 0
  mayDeliver = true
  isOff = false
  #requests = 0
  #end: () => void = () => undefined
  #happenings = this.#start()

  #start(): Happenings {
    const life = { isOver: false }
    const happenings = new Happenings({
      clock: this.clock,
      rows: () => this.bench.bench.state,
      deliver: (delivery) => (life.isOver ? new Promise(() => undefined) : this.#deliver(delivery, life)),
      submit: async (events) => this.write(...events),
      mayDeliver: () => this.mayDeliver && !life.isOver,
      onTrouble: (error) => this.troubles.push(error),
    })
    this.#end = () => {
      life.isOver = true
    }
    return happenings
  }

  /** The process ends at once; another begins with what is durable, and is shown all of it. */
  restart(): void {
    this.#end()
    this.atOnce = 0
    this.bench.restart()
    this.#happenings = this.#start()
    this.#show()
  }

  close(): void {
    this.#happenings.close()
  }

  nudge(): void {
    this.#happenings.nudge()
  }

  write(...events: NewEvent[]): void {
    this.bench.now = this.clock.now() - 1
    this.bench.write(events)
    this.#show()
  }

  #show(): void {
    for (const { watches, react } of this.#happenings.reactors)
      for (const row of [...this.bench.bench.state.hotTable(watches).all()]) react(row)
  }

  watch(sensor_id: string, max_tries = MAX_TRIES): void {
    const config = { type: 'asset' as const, assets: ['orders'] }
    const ids = { sensor_id, sensor_name: sensor_id, definition_hash: 'h', request_id: sensor_id }
    this.write(newEvent(SensorDefined, { ...ids, config, max_tries }))
  }

  happens(report_id: string, at = this.clock.now()): void {
    const report = { report_id, asset_key: 'orders', materialized_at: toIso(at), reported_by: 'dbt' }
    this.write(newEvent(MaterializationReported, report))
  }

  change(type: typeof SensorPaused | typeof SensorResumed, sensor_id = 's'): void {
    this.#requests += 1
    this.write(newEvent(type, { sensor_id, request_id: `c${this.#requests}`, changed_by: 'ada' }))
  }

  /** The deliveries since the last call. */
  take(): string[] {
    return this.begun.splice(0)
  }

  get waiting(): string[] {
    return this.bench.rows(sensorHappenings).map(({ message_id }) => message_id.replace('materialized:report:', ''))
  }

  get accepted(): string[] {
    const accepted = this.bench.rows(sensorMessages).filter(({ status }) => status === 'accepted')
    return accepted.map(({ message_id }) => message_id.replace('materialized:report:', ''))
  }

  async #deliver(delivery: Delivery, life: { isOver: boolean }): ReturnType<Deliveries['deliver']> {
    const { sensor_id, message } = delivery
    const { id: message_id } = message
    this.delivered.push(delivery)
    if (this.isOff) return { kind: 'standstill', code: 'automation_off', by: null, reason: null }
    const known = this.bench.rows(sensorMessages).find((row) => row.sensor_id === sensor_id && row.message_id === message_id)
    const decision = deliveryOf(known, null)
    if (decision.kind === 'dead') return { kind: 'dead', message_id, error: null }
    const done = { kind: 'accepted', message_id, run_ids: [], runs: [], conflict: false } as const
    if (decision.kind !== 'evaluate') return { ...done, eval_id: decision.eval_id, repeated: true }

    const second = (this.clock.now() - this.#started) / SECOND_MS
    this.begun.push(`${sensor_id} ${message_id.replace('materialized:report:', '')}@${second}`)
    this.atOnce += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.atOnce)
    await this.clock.sleep(SECOND_MS)
    if (life.isOver) return new Promise(() => undefined)
    this.atOnce -= 1
    const outcome = this.outcomes.shift() ?? 'ok'
    if (outcome === 'unavailable') throw new ServoError('unavailable', 'store_down', 'the store cannot be written')
    if (outcome === 'crash before the record') this.restart()
    if (life.isOver) return new Promise(() => undefined)
    const failed = outcome === 'error'
    const source = { source: 'push' as const, message_id, try: decision.try, max_tries: MAX_TRIES }
    const begun = `b${this.clock.now()}`
    const facts = { sensor_id, trigger_source: source, begun, status: failed ? ('error' as const) : ('no_new_data' as const) }
    this.write(newEvent(SensorEvaluated, { ...facts, ...(failed && { error: 'it did not work' }) }))
    if (outcome === 'crash after the record') this.restart()
    if (life.isOver) return new Promise(() => undefined)
    if (!failed) return { ...done, eval_id: evalIdOf(sensor_id, source, begun), repeated: false }
    if (decision.try >= MAX_TRIES) return { kind: 'dead', message_id, error: 'it did not work' }
    return { kind: 'failed', message_id, error: 'it did not work', try: decision.try, max_tries: MAX_TRIES }
  }
}

const seconds = (n: number): number => n * SECOND_MS

describe('a sensor is given what happened', () => {
  test('[A60] one at a time, the oldest first, whenever it was heard of', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.happens('a')
    leader.happens('c', leader.clock.now() + 20)
    leader.happens('b', leader.clock.now() + 10)
    await leader.clock.advance(seconds(10))
    expect(leader.take()).toEqual(['s a@0', 's b@1', 's c@2'])
    expect(leader.mostAtOnce).toBe(1)
    expect([leader.accepted, leader.waiting]).toEqual([['a', 'b', 'c'], []])
    const at = '2026-01-01T00:00:00.000Z'
    expect(leader.delivered[0]).toEqual({
      sensor_id: 's',
      message: {
        id: 'materialized:report:a',
        data: { type: 'materialized', asset_key: 'orders', partition_key: null, run_id: null, at },
        attributes: {},
        published_at: at,
      },
      body_hash: null,
      body_size: null,
    })
    leader.happens('d')
    await leader.clock.advance(seconds(1))
    expect(leader.take()).toEqual(['s d@10'])
  })

  test('[A60] beside other sensors, four at a time, each in its turn', async () => {
    const leader = new Leader()
    for (let n = 0; n < 6; n++) leader.watch(`s${n}`)
    leader.happens('a')
    leader.happens('b')
    await leader.clock.advance(seconds(20))
    const at = (second: number) => leader.begun.filter((one) => one.endsWith(`@${second}`)).map((one) => one.split('@')[0])
    expect(leader.mostAtOnce).toBe(4)
    expect(at(0)).toEqual(['s0 a', 's1 a', 's2 a', 's3 a'])
    expect(at(1), 'those that waited go first').toEqual(expect.arrayContaining(['s4 a', 's5 a']))
    expect([leader.begun.length, leader.waiting]).toEqual([12, []])
  })

  test('[A24][A60] again after a failure, later each time, until it is a dead letter and the next has its turn', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.outcomes.push('error', 'error', 'error')
    leader.happens('a')
    leader.happens('b')
    await leader.clock.advance(seconds(100))
    // Five and ten seconds between the tries; the rest after the third is for the sensor, so it counts for the next.
    expect(leader.take()).toEqual(['s a@0', 's a@6', 's a@17', 's b@38'])
    expect([leader.accepted, leader.waiting]).toEqual([['b'], ['a']])
    const replay = { sensor_id: 's', message_id: 'materialized:report:a', request_id: 'r', requested_by: 'ada' }
    leader.write(newEvent(SensorMessageReplayed, replay))
    await leader.clock.advance(seconds(2))
    expect([leader.take(), leader.waiting]).toEqual([['s a@100'], []])
  })

  test('[A59][A60] when it is resumed, and at once although it had failed, and when all automation is', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.outcomes.push('error')
    leader.happens('a')
    await leader.clock.advance(seconds(2))
    leader.change(SensorPaused)
    await leader.clock.advance(seconds(3_600))
    expect(leader.take()).toEqual(['s a@0'])
    leader.happens('b')
    leader.change(SensorResumed)
    await leader.clock.advance(seconds(5))
    expect(leader.take()).toEqual(['s a@3602', 's b@3603'])
    leader.write(newEvent(AutomationPaused, { request_id: 'p', changed_by: 'ada' }))
    leader.happens('c')
    await leader.clock.advance(seconds(60))
    expect(leader.take()).toEqual([])
    leader.write(newEvent(AutomationResumed, { request_id: 'r', changed_by: 'ada' }))
    await leader.clock.advance(seconds(5))
    expect([leader.take(), leader.waiting]).toEqual([['s c@3667'], []])
  })

  test('[A60] not before the project is loaded, nor where there is no automation, nor after the end', async () => {
    const leader = new Leader()
    leader.mayDeliver = false
    leader.watch('s')
    leader.happens('a')
    await leader.clock.advance(seconds(60))
    leader.mayDeliver = true
    leader.isOff = true
    leader.nudge()
    await leader.clock.advance(seconds(60))
    expect(leader.take()).toEqual([])
    leader.isOff = false
    leader.nudge()
    await leader.clock.advance(seconds(5))
    expect(leader.take()).toEqual(['s a@120'])
    leader.close()
    leader.happens('b')
    await leader.clock.advance(seconds(60))
    expect([leader.take(), leader.waiting]).toEqual([[], ['b']])
  })

  test('[A60] again after a crash, unless its evaluation is on record', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.outcomes.push('crash before the record', 'crash after the record')
    for (const id of ['a', 'b', 'c']) leader.happens(id)
    await leader.clock.advance(seconds(20))
    expect(leader.take()).toEqual(['s a@0', 's a@1', 's b@2', 's c@3'])
    expect([leader.accepted, leader.waiting]).toEqual([['a', 'b', 'c'], []])
  })

  test('[A60] again when its evaluation could not be written, which is reported once', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.outcomes.push('unavailable', 'unavailable')
    leader.happens('a')
    await leader.clock.advance(seconds(60))
    expect(leader.take()).toEqual(['s a@0', 's a@6', 's a@17'])
    expect([leader.accepted, leader.troubles.length]).toEqual([['a'], 1])
  })

  test('[A20][A57] never again once it was accepted, although it is reported when the first report is forgotten', async () => {
    const leader = new Leader()
    leader.watch('s')
    leader.happens('a')
    await leader.clock.advance(seconds(5))
    const rows = leader.bench.bench.state.hot(sensorHappenings)
    leader.take()
    const again = { type: 'materialized', asset_key: 'orders', partition_key: null, run_id: null } as const
    for (const row_version of ['1', '2']) {
      const row = {
        sensor_id: 's',
        message_id: 'materialized:report:a',
        happening: again,
        happened_at: 0,
        chain: null,
        dead: false,
      }
      rows.insert({ ...row, row_version })
      leader.write(newEvent(SensorResumed, { sensor_id: 's', request_id: row_version, changed_by: 'ada' }))
      await leader.clock.advance(seconds(5))
      expect([leader.take(), leader.waiting, leader.accepted]).toEqual([[], [], ['a']])
    }
  })

  test('[A57][A60] exactly once, whatever fails, crashes and is paused', async () => {
    const outcome = fc.constantFrom<Outcome>('ok', 'error', 'crash before the record', 'crash after the record', 'unavailable')
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.constant('happens' as const) },
      { weight: 3, arbitrary: fc.constantFrom('a second', 'a minute', 'restart', 'pause', 'resume') },
    )
    const property = fc.asyncProperty(
      fc.array(step, { maxLength: 12 }),
      fc.array(outcome, { maxLength: 10 }),
      async (steps, outcomes) => {
        const leader = new Leader()
        leader.watch('s')
        leader.outcomes.push(...outcomes)
        const happened: string[] = []
        for (const [n, kind] of steps.entries()) {
          if (kind === 'happens') {
            happened.push(`${n}`)
            leader.happens(`${n}`)
          } else if (kind === 'restart') leader.restart()
          else if (kind === 'pause') leader.change(SensorPaused)
          else if (kind === 'resume') leader.change(SensorResumed)
          else await leader.clock.advance(seconds(kind === 'a second' ? 1 : 60))
        }
        leader.change(SensorResumed)
        await leader.clock.advance(seconds(3_600))
        const dead = leader.bench.rows(sensorMessages).filter(({ status }) => status === 'dead')
        expect([...leader.accepted, ...leader.waiting].sort()).toEqual(happened.sort())
        expect(leader.waiting).toHaveLength(dead.length)
      },
    )
    await fc.assert(property, { numRuns: 200 })
  })
})
