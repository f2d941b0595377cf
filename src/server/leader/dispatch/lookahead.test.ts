import { expect, test } from 'vitest'
import { Lookahead } from './lookahead.ts'

const after = (attempts: number, ms: number): Lookahead => {
  const lookahead = new Lookahead()
  for (let i = 0; i < attempts; i++) lookahead.ended(ms)
  return lookahead
}

test('nothing is known yet: one waits, so that a worker that becomes free has something to do', () => {
  expect(new Lookahead().for(4)).toBe(1)
})

test('the shorter attempts are, the more of them wait, up to a limit', () => {
  expect(after(200, 20).for(4)).toBeLessThanOrEqual(5)
  expect(after(200, 1).for(4)).toBeGreaterThan(40)
  expect(after(200, 0).for(4)).toBe(256)
})

test('after short ones, a few long ones are enough to keep the others free to choose', () => {
  const lookahead = after(200, 0)
  for (let i = 0; i < 5; i++) lookahead.ended(10_000)
  expect(lookahead.for(4)).toBe(1)
})
