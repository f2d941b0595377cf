import { expect, test } from 'vitest'
import { ServoError } from '../../src/lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import type { StoreRequest } from '../../src/testing/counting-store.ts'
import { Gate } from '../engine/intercepted-store.ts'
import { Led } from './led.ts'

const opened = async () => {
  const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] })
  const writes = ({ method, path }: StoreRequest): boolean => method === 'create' && path.startsWith(led.paths.ledger)
  return { led, writes, body: { select: ['a'], key: 'r1' } }
}

/** As commands ask: others are told within a second that the storage does not answer. */
const patient = { prefer: 'wait=10' }

test('[L3][O2] nobody is shown what is not durable: the answer waits for the write', async () => {
  const { led, writes, body } = await opened()
  const writing = new Gate(writes)
  led.before = writing.before
  let answers = 0
  const count = (): void => {
    answers += 1
  }
  const requested = led.post('/runs', body, undefined, patient).finally(count)
  await writing.arrived
  const shown = led.get('/runs', patient).finally(count)
  await led.clock.advance(5 * SECOND_MS)
  expect(answers).toBe(0)
  writing.open()
  const { run_id } = (await requested).body
  expect(await shown).toMatchObject({ status: 200, body: { runs: [{ run_id }] } })
})

test('[O2] nobody is shown what could not be written', async () => {
  const { led, writes, body } = await opened()
  led.before = async (request) => {
    if (!writes(request)) return
    await led.clock.sleep(SECOND_MS)
    throw new ServoError('unavailable', 'storage_unavailable', 'the store is away')
  }
  const requested = led.post('/runs', body)
  await led.clock.advance(SECOND_MS / 2)
  const shown = led.get('/runs')
  await led.clock.advance(MINUTE_MS)
  expect((await requested).status).toBe(503)
  expect((await shown).status).toBe(503)
})

test('[O2] a question is answered in bounded time though a write hangs, and whether the server lives at once', async () => {
  const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] })
  led.before = ({ method, path }) =>
    method === 'create' && path.startsWith(led.paths.ledger) ? new Promise<void>(() => undefined) : undefined
  const told = led.request('r1').catch((error: { code: string }) => error.code)
  await led.clock.advance(0)
  const shown = led.get('/runs')
  const alive = await led.server.fetch(
    new Request('http://127.0.0.1:4400/health/live', { headers: { host: '127.0.0.1:4400' } }),
  )
  expect(alive.status).toBe(200)
  await led.clock.advance(15_000)
  expect((await shown).status).toBe(503)
  expect(await told).toBe('storage_slow')
})

test('a task that the run does not have and an asset that nobody declares are refused with what could be meant', async () => {
  const day = (asset_key: string) => ({
    asset_key,
    kind: 'asset' as const,
    partitions: { type: 'keys' as const, keys: ['a', 'b'] },
  })
  const led = await Led.open({
    assets: [day('mart/best'), { asset_key: 'raw', kind: 'asset' }, { asset_key: 'rare', kind: 'asset' }],
  })
  const { runs } = led.server.api
  const { run_id } = await runs.request({ select: ['mart/best', 'raw'], partitions: ['*'] }, 'tester')
  await led.clock.advance(MINUTE_MS)
  const logs = async (task: string) => (await led.get(`/runs/${run_id}/logs?task=${encodeURIComponent(task)}`)).body
  expect(await logs('nope')).toMatchObject({
    code: 'no_such_task',
    detail: `task "nope" not found in ${run_id}`,
    hint: 'Its tasks: mart/best[a], mart/best[b], raw.',
  })
  expect(await logs('mart/best')).toMatchObject({ hint: 'Its tasks: mart/best[a], mart/best[b].' })
  expect(await logs('mart/bst[a]')).toMatchObject({ hint: 'Did you mean mart/best[a]?' })

  const rerun = async (selection: string) =>
    (await led.post(`/runs/${run_id}/rerun`, { mode: 'subset', select: selection })).body
  expect(await rerun('mart/bets')).toMatchObject({ detail: 'asset "mart/bets" not found', hint: 'Did you mean mart/best?' })
  expect(await rerun('rare')).toMatchObject({ code: 'nothing_to_rerun', detail: `${run_id} has no task that rare selects` })
})
