import { expect, test } from 'vitest'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { HOUR_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { Sensing } from './sensing.ts'

const assets = ['orders', 'report'].map((asset_key) => ({ asset_key, kind: 'asset' as const }))
/** Each asks for what the other watches. */
const asks: Readonly<Record<string, string>> = { 'on-orders': 'report', 'on-report': 'orders' }
const watch = (name: string, asset: string) => ({ name, config: { type: 'asset' as const, assets: [asset] } })

test('[A78] sensors that wait for each other are stopped after 50 runs, with a dead letter that says so, hear of other runs at once, and go on after a replay', async () => {
  const sensing = await Sensing.open([watch('on-orders', 'orders'), watch('on-report', 'report')], { assets })
  sensing.evaluator.script = (request) => {
    const asset = asks['sensor' in request ? request.sensor : '']
    return { report: { outcome: 'requests', runs: asset === undefined ? [] : [{ asset_selection: [asset] }] } }
  }
  const request = (key: string) => sensing.soon(sensing.server.api.runs.request({ select: ['orders'], key }, 'ana'))
  const having = (status: string) => sensing.evals().filter((one) => one.status === status)
  const asked = () => having('triggered').length
  const stopped = async (dead_letters: number) => {
    for (let i = 0; i < 10_000 && having('error').length < dead_letters; i++) await sensing.clock.advance(50)
    expect(sensing.state('on-orders')).toMatchObject({
      status: 'ERROR',
      dead_letters,
      consecutive_errors: 1,
      backoff_until: null,
    })
  }
  await request('first')
  await stopped(1)
  expect(asked()).toBe(50)
  // The run of the user is the first that a sensor hears of, so the fiftieth run of a sensor is one of orders.
  const last_error = sensing.state('on-orders')?.last_error
  expect(last_error).toContain('sensors requested 50 runs in a row, each triggered by the one before')
  expect(last_error).toContain('change on-orders so that its runs do not lead back to it.')

  await request('second')
  await sensing.clock.advance(3 * SECOND_MS)
  expect(asked(), 'what a user asks for is heard at once, and begins anew').toBeGreaterThan(50)
  await stopped(2)
  expect(asked()).toBe(100)
  await sensing.clock.advance(HOUR_MS)
  expect(having('error'), 'nothing is tried again').toMatchObject([{ try: 1 }, { try: 1 }])
  expect(asked(), 'nothing goes on').toBe(100)

  const message_id = having('error')[0]?.message_id ?? ''
  expect(sensing.messages().find((one) => one.message_id === message_id)).toMatchObject({ status: 'dead', tries: 1 })
  const { whys, sensors } = sensing.server.api
  for (const about of [{}, { message: message_id }]) {
    const { because } = await whys.why('sensor', 'on-orders', about)
    expect(JSON.stringify(because)).toContain('50 runs in a row')
  }
  const [said] = whyInWords(await whys.why('sensor', 'on-orders', { message: message_id }), 'UTC')
  expect(said?.text.match(/replay/gi), 'the command is said once').toEqual(['Replay', 'replay'])
  await sensing.soon(sensors.replay('on-orders', message_id, {}, 'ana'))
  await sensing.clock.advance(HOUR_MS)
  expect(asked(), 'a replay goes on for 50 more').toBe(150)
  expect(sensing.state('on-orders')?.dead_letters).toBe(2)
})
