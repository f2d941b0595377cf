import { expect, test } from 'vitest'
import type { EvaluationReport, EvaluationRequest } from '../../../src/contract/evaluation.ts'
import type { SensorDefinitionInput, SensorSource } from '../../../src/contract/sensor.ts'
import { sensorDefinitions } from '../../../src/domain/sensors/sensor-definitions.table.ts'
import { sensorState } from '../../../src/domain/sensors/sensor-state.table.ts'
import { Led } from '../led.ts'

/** A server with a webhook, which notes what its sensor is asked. */
async function open(
  environment: Record<string, string> = { SHOP_TOKEN: 'right' },
  answer: EvaluationReport = { outcome: 'requests', runs: [] },
) {
  const troubles: unknown[] = []
  const asked: EvaluationRequest[] = []
  const evaluate = async (request: EvaluationRequest) => {
    asked.push(request)
    return answer
  }
  const config: SensorSource = { type: 'webhook', path: 'orders', verify: 'token', secrets: ['SHOP_TOKEN'] }
  const led = await Led.open(
    { assets: [{ asset_key: 'orders', kind: 'asset' }], sensors: [{ name: 'orders', config }] },
    { environment, automation: true, evaluator: { evaluate }, onTrouble: (error) => troubles.push(error) },
  )
  const [{ sensor_id = '' } = {}] = led.server.orchestrator.loop.compactor.state.hot(sensorDefinitions).all()
  const send = async (token: string): Promise<number> => {
    const headers = {
      host: 'tunnel.example',
      authorization: `Bearer ${token}`,
      'x-message-id': 'm1',
      'content-type': 'text/plain',
    }
    const address = `https://tunnel.example/hooks/${led.memory.scope.tenant_id}/${led.memory.scope.workspace_id}/orders`
    return (await led.server.fetch(new Request(address, { method: 'POST', headers, body: 'hello' }))).status
  }
  return { led, asked, sensor_id, send, troubles }
}

test('[A51] a server delivers what reaches it by any name, if its sender has the secret', async () => {
  const { asked, send } = await open()
  expect(await send('right')).toBe(200)
  expect(asked).toMatchObject([{ of: 'message', sensor: 'orders', message: { id: 'm1', data: 'hello' } }])
})

test('[A52] a server keeps a count of what it refused, and writes nothing', async () => {
  const { led, asked, sensor_id, send } = await open()
  // What the declaration of the sensor wrote is published first.
  await led.clock.advance(60_000)
  const writes: string[] = []
  led.before = ({ method }) => void writes.push(method)
  for (const token of ['wrong', 'guess', 'righ']) expect(await send(token)).toBe(401)
  expect([asked, led.server.hooks.refusals(sensor_id), writes]).toEqual([[], { bad_token: 3 }, []])
})

test('a server that no longer leads tells senders to try again, because 4xx makes some give up', async () => {
  const { led, send } = await open()
  led.lease.lose()
  expect(await send('right')).toBe(503)
})

test('[A52] a server says which secret is not set when it loads the project, and wherever one looks for what is wrong', async () => {
  const { led, send, troubles } = await open({})
  expect(troubles.map(String)).toEqual([expect.stringContaining('SHOP_TOKEN is not set')])
  expect(await send('right')).toBe(503)
  const { sensors, whys } = led.server.api
  const shown = await sensors.get('orders')
  expect(shown.senders).toEqual({
    url: `http://127.0.0.1:4400${shown.address}`,
    audience: null,
    missing_secrets: ['SHOP_TOKEN'],
    refused: { secret_missing: 1 },
  })
  const { because } = await whys.why('sensor', 'orders', {})
  expect(because.map(({ code }) => code)).toEqual(['secret_missing', 'never_evaluated'])
  const fine = await open()
  expect([fine.troubles, (await fine.led.server.api.sensors.get('orders')).senders?.missing_secrets]).toEqual([[], []])
})

test('[A52] a server says which audience the token of a push must be for, and names the sensor in its address', async () => {
  const topic = 'projects/shop/topics/orders'
  const push = (name: string, audience?: string): SensorDefinitionInput => ({
    name,
    config: { type: 'pubsub', topic, audience },
  })
  const sensors = [push('late orders'), push('other', 'shop')]
  const led = await Led.open({ assets: [{ asset_key: 'orders', kind: 'asset' }], sensors }, { automation: true })
  const [first, second] = (await led.server.api.sensors.list({ limit: 50 })).sensors
  expect(first?.address).toMatch(/^\/pubsub\/\S+\/late%20orders$/)
  expect(first?.senders).toMatchObject({ audience: `http://127.0.0.1:4400${first?.address}` })
  expect(second?.senders).toMatchObject({ audience: 'shop' })
})

test('[A52] an error that quotes a secret of a webhook is recorded without it', async () => {
  const secret = 'whsec_c2VjcmV0'
  const env = JSON.stringify({ SHOP_TOKEN: secret })
  const { led, send, sensor_id } = await open(
    { SHOP_TOKEN: secret },
    { outcome: 'error', error: `it failed with ${secret} in ${env}` },
  )
  expect(await send(secret)).toBe(500)
  const { last_error } = led.server.orchestrator.readable.state.hot(sensorState).get(sensor_id) ?? {}
  expect(last_error).toBe('it failed with [redacted SHOP_TOKEN] in {"SHOP_TOKEN":"[redacted SHOP_TOKEN]"}')
})
