import { expect, test } from 'vitest'
import { isTraceparent, traceparentOf } from './traceparent.ts'

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const span = '00f067aa0ba902b7'

test('a trace is known by its form', () => {
  expect(isTraceparent(`00-${trace}-${span}-01`)).toBe(true)
  expect(traceparentOf(`00-${trace}-${span}-00`)).toBe(`00-${trace}-${span}-00`)
})

test.each([
  '',
  'none',
  `00-${trace}-${span}`,
  `00-${trace.toUpperCase()}-${span}-01`,
  `ff-${trace}-${span}-01`,
  `00-${'0'.repeat(32)}-${span}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace}-${span}-01-more`,
  ` 00-${trace}-${span}-01`,
])('%j is passed over', (text) => {
  expect(traceparentOf(text)).toBeUndefined()
})
