import { describe, expect, test } from 'vitest'
import type { AskedRun } from '../../../contract/evaluation.ts'
import type { NewEvent } from '../../../model/event.ts'
import { SensorBench } from '../../../testing/sensor-bench.ts'
import { dynamicPartitions } from '../../partitions/dynamic-partitions.table.ts'
import { againKey, type RunOfKey } from '../../runs/again.ts'
import { requestFingerprint } from '../../runs/run-ids.ts'
import { runs } from '../../runs/runs.table.ts'
import { evalIdOf } from '../evaluation-ids.ts'
import { sensorEvals } from '../sensor-evals.table.ts'
import { type EvaluationResult, isEmptyPoll } from './evaluation-events.ts'
import { fixedResult } from './fixed-result.ts'

const orders: AskedRun = { asset_selection: ['orders'] }
const message = { source: 'push', message_id: 'm 1', try: 1 } as const
const days = { type: 'daily', start: '2025-01-01' }

function defined(assets: Readonly<Record<string, object | null>> = { orders: null, revenue: null }, selection: string[] = []) {
  const sensor = new SensorBench('inbox', assets)
  sensor.define({ config: { type: 'webhook', path: 'inbox', verify: 'none' }, asset_selection: selection, timeout_ms: 2_000 })
  return sensor
}
const types = (events: readonly NewEvent[]) => events.map(({ definition }) => definition.type)
/** What is on record after this result of a message. */
function recorded(sensor: SensorBench, result: EvaluationResult) {
  sensor.write(sensor.eventsOf({ source: message, begun: 'b', result }))
  const [evaluation] = sensor.rows(sensorEvals)
  return { evaluation, runs: sensor.rows(runs) }
}

describe('the result of an evaluation', () => {
  test('[A1][A25] is one batch: its record, and each run under its key or its place', () => {
    const sensor = defined()
    const keyed = { asset_selection: ['revenue'], key: 'invoice 7', labels: { team: 'shop' }, priority: 3 }
    const events = sensor.eventsOf({ source: message, begun: 'b', result: { runs: [orders, keyed] } })
    expect(types(events)).toEqual(['SensorEvaluated', 'RunRequested', 'RunRequested'])
    sensor.write(events)
    const run_keys = ['sensor:inbox:msg:m%201:0', 'sensor:inbox:key:invoice%207']
    expect(sensor.rows(sensorEvals)).toMatchObject([{ status: 'triggered', accepted: true, run_keys }])
    const made = sensor.rows(runs).map((run) => [run.run_key, run.asset_selection, run.labels, run.priority])
    expect(new Set(made)).toEqual(
      new Set([
        [run_keys[0], ['orders'], {}, 0],
        [run_keys[1], ['revenue'], { team: 'shop' }, 3],
      ]),
    )
    expect(sensor.rows(runs)[0]?.trigger_source_ref).toEqual({
      type: 'sensor',
      sensor_id: 'inbox',
      eval_id: evalIdOf('inbox', message, 'b'),
    })
  })

  test('[A3][P7] of a poll moves the cursor and changes keys, and without any news is empty', () => {
    const sensor = defined()
    const source = { source: 'poll', state_version: 0, cursor: null } as const
    const result = { runs: [], cursor: '7', partition_keys_added: [{ set_name: 'customers', keys: ['acme'] }] }
    sensor.write(sensor.eventsOf({ source, begun: 'b', result }))
    expect(sensor.state).toMatchObject({ cursor: '7', state_version: 1 })
    expect(sensor.rows(dynamicPartitions)).toMatchObject([{ partition_key: 'acme', changed_by: 'sensor:inbox' }])
    expect(isEmptyPoll(result, null)).toBe(false)
    expect(isEmptyPoll({ runs: [], cursor: '7' }, null)).toBe(false)
    expect(isEmptyPoll({ runs: [orders], cursor: '7' }, '7')).toBe(false)
    expect(isEmptyPoll({ error: 'no route to host' }, '7')).toBe(false)
    for (const cursor of ['7', null, undefined])
      expect(isEmptyPoll({ runs: [], ...(cursor !== undefined && { cursor }) }, '7')).toBe(true)
  })

  const bad: [string, EvaluationResult, string][] = [
    ['an error', { error: 'no such column' }, 'no such column'],
    ['an error without a word', { error: '' }, 'no reason was given'],
    ['too long a time', { timedOut: true }, 'it took longer than its timeout of 2000 ms'],
    [
      '1,001 runs',
      { runs: Array.from({ length: 1_001 }, () => orders) },
      'it requested 1001 runs; the limit of one evaluation is 1000. Return the first of them and a cursor that points after them, or request a backfill.',
    ],
    ['an endless cursor', { runs: [], cursor: 'x'.repeat(65_537) }, 'its cursor has 65537 characters'],
    [
      'an unknown asset among others',
      { runs: [orders, { asset_selection: ['order'] }] },
      'asset order not found. Did you mean orders?',
    ],
    ['an invalid partition', { runs: [{ asset_selection: ['orders[2025-01-15]'] }] }, 'orders has no partitions'],
    [
      'more keys than an event has room for',
      {
        runs: [],
        partition_keys_added: [{ set_name: 's', keys: Array.from({ length: 10_000 }, (_, n) => `${n}${'k'.repeat(100)}`) }],
      },
      'its result has 1069239 bytes; the limit is 900000. Return fewer keys or runs at a time.',
    ],
  ]
  test.each(bad)('[A31] %s is an error on record, and makes no run at all', (_, result, error) => {
    const { evaluation, runs: made } = recorded(defined(), result)
    expect(evaluation).toMatchObject({ status: 'error', accepted: false, run_keys: [], error: expect.stringContaining(error) })
    expect(made).toEqual([])
  })

  test('[A31] may have a thousand runs', () => {
    const { evaluation, runs: made } = recorded(defined(), { runs: Array.from({ length: 1_000 }, () => orders) })
    expect([evaluation?.run_keys.length, made.length]).toEqual([1_000, 1_000])
  })

  test('[A31] asks only for what the sensor may run', () => {
    const sensor = defined(undefined, ['orders'])
    expect(recorded(sensor, { runs: [orders, { asset_selection: ['revenue'] }] })).toMatchObject({
      evaluation: {
        status: 'error',
        error: expect.stringContaining('it requested revenue, which inbox may not run. Add it to `select` of the sensor.'),
      },
      runs: [],
    })
  })

  test('[A29] that asks again for the key of a run that failed is a rerun of that, and counts only if the evaluation does', () => {
    const key = 'sensor:inbox:key:seven'
    const failed: RunOfKey = { run_id: 'run_first', state: 'FAILED', request_fingerprint: requestFingerprint(orders) }
    const runOf = (runKey: string) => (runKey === key ? failed : undefined)
    const result = { runs: [{ ...orders, key: 'seven' }] }
    const sensor = defined()
    sensor.write(sensor.eventsOf({ source: message, begun: 'b', result, runOf }))
    const eval_id = evalIdOf('inbox', message, 'b')
    expect(sensor.rows(runs)).toMatchObject([
      {
        run_key: againKey(key, 'run_first'),
        trigger_source_ref: { type: 'rerun', run_id: 'run_first', mode: 'all', asked_by: { sensor_id: 'inbox', eval_id } },
      },
    ])
    // The message was accepted, so what a second server makes of it counts for nothing, and its rerun of the rerun neither.
    const failedTwice = (runKey: string): RunOfKey | undefined =>
      [key, againKey(key, 'run_first')].includes(runKey)
        ? { ...failed, run_id: runKey === key ? 'run_first' : 'run_2' }
        : undefined
    const late = sensor.eventsOf({ source: message, begun: 'c', result, runOf: failedTwice })
    expect(types(late)).toEqual(['SensorEvaluated', 'RunRequested'])
    sensor.write(late)
    expect(sensor.rows(runs)).toHaveLength(1)
    expect(sensor.bench.parking()).toEqual([])
  })
})

describe('a sensor without code', () => {
  const config = {
    type: 'webhook',
    path: 'inbox',
    verify: 'none',
    fixed: { partition: '/order/0/date', key: '/a~1b' },
  } as const
  const fixed = () => {
    const sensor = new SensorBench('inbox', { orders: days })
    sensor.define({ config, has_code: false, asset_selection: ['orders'] })
    return sensor
  }

  test('[A30] takes partition and key from the message, by JSON pointer', () => {
    const sensor = fixed()
    const result = fixedResult(sensor.definition, { order: [{ date: '2025-01-14' }], 'a/b': 7 })
    expect(recorded(sensor, result).runs).toMatchObject([
      { run_key: 'sensor:inbox:key:7', asset_selection: ['orders'], partition_selection: ['2025-01-14'] },
    ])
  })

  test.each([
    [{ 'a/b': 7 }, 'the partition of the run must be a string or a number at /order/0/date of the message, not nothing.'],
    [
      { order: [{ date: '2025-01-14' }], 'a/b': null },
      'the key of the run must be a string or a number at /a~1b of the message, not null.',
    ],
    ['text', 'the partition of the run must be a string or a number at /order/0/date of the message, not nothing.'],
  ])('[A30] fails with a message that does not name them: %j', (body, error) => {
    const sensor = fixed()
    expect(recorded(sensor, fixedResult(sensor.definition, body)).evaluation?.error).toContain(error)
  })
})
