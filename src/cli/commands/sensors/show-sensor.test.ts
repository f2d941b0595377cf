import { expect, test } from 'vitest'
import type { SensorDetail } from '../../../api/automation/sensor-contract.ts'
import { wireRow } from '../../../api/wire-row.ts'
import type { SensorDefinitionInput } from '../../../contract/sensor.ts'
import { sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { SensorBench } from '../../../testing/sensor-bench.ts'
import { aboutSensor } from './show-sensor.ts'

function shown(
  definition: Omit<SensorDefinitionInput, 'name'>,
  senders: SensorDetail['senders'] = null,
  unrecorded_polls: SensorDetail['unrecorded_polls'] = null,
) {
  const bench = new SensorBench()
  bench.define(definition)
  const about = aboutSensor({
    definition: wireRow(sensorDefinitions, bench.definition),
    state: null,
    status: 'active',
    status_reason: null,
    next_poll_at: null,
    unrecorded_polls,
    address: '/hooks/a/b/orders',
    senders,
    last_eval: null,
  })
  return Object.fromEntries(about)
}

test('a sensor is shown in lines, with durations in words', () => {
  const days = { type: 'poll', every_ms: 3 * 86_400_000 } as const
  expect(shown({ config: days, timeout_ms: 90_000 })).toMatchObject({ type: 'poll', every: '3 days', timeout: '90 s' })
  expect(shown({ config: { type: 'poll', every_ms: 300_000 } })).toMatchObject({ every: '5 min', timeout: '30 s' })
  expect(shown({ config: { type: 'run', states: ['FAILED'] } })).toMatchObject({ watches: 'all runs', states: 'FAILED' })
})

test('a poll is shown with what it did since the last record', () => {
  const polls = { count: 3, first: '2025-01-15T10:00:00.000Z', last: '2025-01-15T10:00:20.000Z' }
  expect(shown({ config: { type: 'poll', every_ms: 10_000 } }, null, polls)).toMatchObject({
    evaluated: expect.stringContaining('no_new_data'),
    polls: expect.stringMatching(/^3 found nothing .*; those are recorded every two minutes$/),
  })
})

test('a webhook is shown with its URL, what it refused, and the secret that is not set', () => {
  const config: SensorDefinitionInput['config'] = { type: 'webhook', path: 'orders', verify: 'token', secrets: ['SHOP'] }
  expect(shown({ config })).toMatchObject({ address: '/hooks/a/b/orders', verify: 'token', secret: 'SHOP' })
  const url = 'http://127.0.0.1:4400/hooks/a/b/orders'
  const senders = { url, audience: null, missing_secrets: ['SHOP'], refused: { secret_missing: 2, bad_token: 1 } }
  expect(shown({ config }, senders)).toMatchObject({
    address: url,
    wrong: 'its secret SHOP is not set in the environment of the server, so its messages are refused',
    refused: '2 secret_missing, 1 bad_token, since the server started',
  })
})

test('a push is shown with the audience that is expected', () => {
  const config = { type: 'pubsub', topic: 'projects/p/topics/t' } as const
  expect(shown({ config })).toMatchObject({ audience: 'its address below SERVO_PUBLIC_URL' })
  const senders = {
    url: 'https://x/pubsub/a/b/inbox',
    audience: 'https://x/pubsub/a/b/inbox',
    missing_secrets: [],
    refused: {},
  }
  expect(shown({ config }, senders)).toMatchObject({ audience: 'https://x/pubsub/a/b/inbox' })
})
