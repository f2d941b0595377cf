import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../../src/lib/time.ts'
import { Sensing } from './sensing.ts'

const assets = ['orders', 'report'].map((asset_key) => ({ asset_key, kind: 'asset' as const }))
/** Each asks for what the other watches. */
const asks: Readonly<Record<string, string>> = { 'on-orders': 'report', 'on-report': 'orders' }
const watch = (name: string, asset: string) => ({ name, config: { type: 'asset' as const, assets: [asset] } })

test('[A78] sensors that wait for each other are stopped after 50 runs, with an error that says so, and hear of other runs as before', async () => {
  const sensing = await Sensing.open([watch('on-orders', 'orders'), watch('on-report', 'report')], { assets })
  sensing.evaluator.script = (request) => {
    const asset = asks['sensor' in request ? request.sensor : '']
    return { report: { outcome: 'requests', runs: asset === undefined ? [] : [{ asset_selection: [asset] }] } }
  }
  const request = (key: string) => sensing.server.api.runs.request({ selection: ['orders'], key }, 'ana')
  const asked = () => sensing.evals().filter(({ status }) => status === 'triggered').length
  await sensing.soon(request('first'))
  await sensing.clock.advance(HOUR_MS)
  expect(asked()).toBe(50)
  // The run of the user is the first that a sensor hears of, so the fiftieth run of a sensor is one of orders.
  const state = sensing.state('on-orders')
  expect(state).toMatchObject({ status: 'ERROR', dead_letters: 1, last_error: expect.stringContaining('50 runs in a row') })
  expect(state?.last_error).toContain('let on-orders ask for nothing that leads back to it')
  const { because } = await sensing.server.api.whys.why('sensor', 'on-orders', {})
  expect(JSON.stringify(because)).toContain('50 runs in a row')
  await sensing.clock.advance(HOUR_MS)
  expect(asked(), 'nothing goes on').toBe(50)

  await sensing.soon(request('second'))
  await sensing.clock.advance(MINUTE_MS)
  expect(asked(), 'what a user asks for begins anew').toBeGreaterThan(50)
})
