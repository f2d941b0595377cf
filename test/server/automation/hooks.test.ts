import { expect, test } from 'vitest'
import type { EvaluationRequest } from '../../../src/contract/evaluation.ts'
import type { SensorSource } from '../../../src/contract/sensor.ts'
import { sensorDefinitions } from '../../../src/domain/sensors/sensor-definitions.table.ts'
import { Led } from '../led.ts'

/** A server with a webhook, which notes what its sensor is asked. */
async function open() {
  const asked: EvaluationRequest[] = []
  const evaluate = async (request: EvaluationRequest) => {
    asked.push(request)
    return { outcome: 'requests', runs: [] } as const
  }
  const config: SensorSource = { type: 'webhook', path: 'orders', verify: 'token', secrets: ['SHOP_TOKEN'] }
  const led = await Led.open(
    { assets: [{ asset_key: 'orders', kind: 'asset' }], sensors: [{ name: 'orders', config }] },
    { environment: { SHOP_TOKEN: 'right' }, automation: true, evaluator: { evaluate } },
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
  return { led, asked, sensor_id, send }
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
