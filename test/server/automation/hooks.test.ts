import { expect, test } from 'vitest'
import type { Delivery } from '../../../src/contract/delivery.ts'
import type { SensorSource } from '../../../src/contract/sensor.ts'
import { SensorDefined } from '../../../src/domain/sensors/sensor-defined.event.ts'
import { newEvent } from '../../../src/model/event.ts'
import { Led } from '../led.ts'

const never = async () => Promise.reject(new Error('a sender neither tries nor polls'))

/** A server with a webhook, which notes what is delivered to it. */
async function open() {
  const delivered: Delivery[] = []
  const deliver = async (delivery: Delivery) => {
    delivered.push(delivery)
    const { id } = delivery.message
    return { kind: 'accepted', message_id: id, eval_id: 'e1', run_ids: [], repeated: false, conflict: false } as const
  }
  const led = await Led.open(
    { assets: [{ asset_key: 'orders', kind: 'asset' }] },
    { environment: { SHOP_TOKEN: 'right' }, deliveries: { deliver, dryRun: never, poll: never } },
  )
  const config: SensorSource = { type: 'webhook', path: 'orders', verify: 'token', secrets: ['SHOP_TOKEN'] }
  const facts = { sensor_id: 's1', sensor_name: 'orders', definition_hash: 'h1', request_id: 'r1' }
  await led.server.orchestrator.submit([newEvent(SensorDefined, { ...facts, config })])
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
  return { led, delivered, send }
}

test('[A51] a server delivers what reaches it by any name, if its sender has the secret', async () => {
  const { delivered, send } = await open()
  expect(await send('right')).toBe(200)
  expect(delivered).toMatchObject([{ sensor_id: 's1', message: { id: 'm1', data: 'hello' }, body_size: 5 }])
})

test('[A52] a server keeps a count of what it refused, and writes nothing', async () => {
  const { led, delivered, send } = await open()
  // What the declaration of the sensor wrote is published first.
  await led.clock.advance(60_000)
  const writes: string[] = []
  led.before = ({ method }) => void writes.push(method)
  for (const token of ['wrong', 'guess', 'righ']) expect(await send(token)).toBe(401)
  expect([delivered, led.server.hooks.refusals('s1'), writes]).toEqual([[], { bad_token: 3 }, []])
})

test('a server that no longer leads tells senders to try again, because 4xx makes some give up', async () => {
  const { led, send } = await open()
  led.lease.lose()
  expect(await send('right')).toBe(503)
})
