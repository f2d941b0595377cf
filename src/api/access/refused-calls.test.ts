import { expect, test } from 'vitest'
import { ServoError } from '../../lib/error.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { unauthenticated } from './access.ts'
import { RefusedCalls } from './refused-calls.ts'

test('[U6] every refused call is counted, and the owner is told of them once a minute for each reason', async () => {
  const clock = new VirtualClock()
  const told: string[] = []
  const refused = new RefusedCalls(clock, (error) => told.push(error.message))
  for (let i = 0; i < 1_000; i++) refused.notice(unauthenticated('unknown token servo_secret'), 'POST /runs')
  refused.notice(new ServoError('invalid', 'not_permitted', 'this needs the role admin'), 'POST /tokens')
  refused.notice(new ServoError('invalid', 'bad_body', 'not about who calls'), 'POST /runs')
  refused.notice(new TypeError('a bug'), 'POST /runs')
  expect(refused.counts).toMatchObject({ unauthenticated: 1_000, not_permitted: 1, token_revoked: 0 })
  expect(told).toEqual(['a call was refused: unauthenticated (POST /runs)', 'a call was refused: not_permitted (POST /tokens)'])
  await clock.advance(MINUTE_MS)
  expect(told.splice(0, 2)).toHaveLength(2)
  expect(told).toEqual(['999 calls were refused: unauthenticated (last: POST /runs)'])
  await clock.advance(10 * MINUTE_MS)
  expect(told).toHaveLength(1)
  refused.notice(unauthenticated('again'), 'GET /runs')
  expect(told.at(-1)).toBe('a call was refused: unauthenticated (GET /runs)')
  refused.notice(unauthenticated('again'), 'GET /runs')
  refused.stop()
  await clock.advance(MINUTE_MS)
  expect(told).toHaveLength(2)
})
