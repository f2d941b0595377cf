import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { DAY_MS, SECOND_MS } from '../../lib/time.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { type IdentifiedChange, KeptAnswers } from './kept-answers.ts'

const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
const request: IdentifiedChange = { caller: 'ana', target: 'POST /backfills', id: 'once', said: { body: { days: 3 } } }

function desk(clock = new VirtualClock(), store = memoryStore()) {
  let made = 0
  const work = async (): Promise<Response> => Response.json({ made: ++made }, { status: 202 })
  const start = () => new KeptAnswers({ store, scope, clock })
  let kept = start()
  return {
    clock,
    store,
    made: () => made,
    restart() {
      kept = start()
    },
    async ask(changes: Partial<IdentifiedChange> = {}, does: () => Promise<Response> = work, keepsBody = true) {
      const response = await kept.once({ ...request, ...changes }, does, keepsBody)
      return [response.status, await response.json(), response.headers.get('idempotency-replayed')]
    },
  }
}

test('[Y1] a request that is repeated under its id gets the first answer, after a restart too', async () => {
  const { ask, restart, made } = desk()
  expect(await ask()).toEqual([202, { made: 1 }, null])
  expect(await ask()).toEqual([202, { made: 1 }, 'true'])
  restart()
  expect(await ask()).toEqual([202, { made: 1 }, 'true'])
  expect(made()).toBe(1)
})

test('[Y1] fifty at once are one', async () => {
  const { ask, made } = desk()
  const answers = await Promise.all(Array.from({ length: 50 }, () => ask()))
  expect(new Set(answers.map(([, body]) => JSON.stringify(body)))).toEqual(new Set(['{"made":1}']))
  expect([made(), answers.filter(([, , replayed]) => replayed === 'true').length]).toEqual([1, 49])
})

test('[Y2] another request under the same id is refused, while the first is in flight too', async () => {
  const { ask, restart } = desk()
  const first = ask()
  await expect(ask({ said: { body: { days: 4 } } })).rejects.toMatchObject({ code: 'idempotency_key_reused' })
  await first
  restart()
  await expect(ask({ said: { body: { days: 4 } } })).rejects.toMatchObject({ code: 'idempotency_key_reused' })
})

test('[Y1] callers and targets have ids of their own', async () => {
  const { ask } = desk()
  await ask()
  expect(await ask({ caller: 'eve' })).toEqual([202, { made: 2 }, null])
  expect(await ask({ target: 'POST /schedules/x/pause' })).toEqual([202, { made: 3 }, null])
})

test('[Y3] a repetition waits for the first, and is told to come again if that takes too long', async () => {
  const { ask, clock } = desk()
  const slow = Promise.withResolvers<Response>()
  const first = ask({}, () => slow.promise)
  const tired = ask().catch((error: unknown) => error)
  await clock.advance(6 * SECOND_MS)
  const patient = ask()
  await clock.advance(5 * SECOND_MS)
  expect(await tired).toMatchObject({ code: 'request_in_flight', facts: { retry_after_sec: 1 } })
  slow.resolve(Response.json({ made: 'late' }, { status: 202 }))
  expect([await first, await patient]).toEqual([
    [202, { made: 'late' }, null],
    [202, { made: 'late' }, 'true'],
  ])
})

test('[Y1] what was refused is not kept: corrected, it may be asked for under the same id', async () => {
  const { ask } = desk()
  await expect(ask({}, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await ask({ said: { body: { days: 9 } } })).toEqual([202, { made: 1 }, null])
})

test('[Y4] answers are kept for 31 days at least, and not for ever', async () => {
  const { ask, clock, store, restart } = desk()
  await ask()
  for (let day = 0; day < 31; day++) await clock.advance(DAY_MS)
  restart()
  expect(await ask()).toEqual([202, { made: 1 }, 'true'])
  for (let day = 0; day < 62; day++) await clock.advance(DAY_MS)
  restart()
  expect(await ask()).toEqual([202, { made: 2 }, null])
  // The first one is removed behind the answer.
  await clock.advance(1)
  expect((await Array.fromAsync(store.list('tenant=acme/workspace=analytics/requests/'))).length).toBe(1)
})

test('[Y5] an answer with a secret is not kept, and what it was for is not done again', async () => {
  const { ask, made, store } = desk()
  const secret = async () => Response.json({ token: 'hush' }, { status: 201 })
  expect(await ask({}, secret, false)).toEqual([201, { token: 'hush' }, null])
  await expect(ask({}, secret, false)).rejects.toMatchObject({ code: 'answer_not_kept' })
  expect(made()).toBe(0)
  for await (const { path } of store.list(''))
    expect(Buffer.from((await store.get(path)) ?? []).toString()).not.toContain('hush')
})
