import { expect, test } from 'vitest'
import { nearest } from './nearest.ts'

test.each([
  ['ordrs', ['orders', 'revenue'], 'orders'],
  ['Mart/Revenue', ['mart/revenu', 'mart/revenue'], 'mart/revenue'],
  ['revnue', ['orders', 'avenue', 'revenue'], 'revenue'],
  ['orders', ['raw/order', 'raw/orders'], 'raw/orders'],
  ['retries', ['retry', 'resources'], 'retry'],
  ['costs', ['orders', 'revenue'], undefined],
  ['a', ['b'], undefined],
  ['', ['a'], undefined],
])('of %j in %j the nearest is %j', (word, candidates, expected) => {
  expect(nearest(word, candidates)).toBe(expected)
})
