import { expect, test } from 'vitest'
import { findingText } from './reported-check.ts'

test('a finding has the message of a check and the facts that the message does not have', () => {
  expect(findingText({ metadata: { message: 'odd', n: 3 } })).toBe('odd n=3')
  expect(findingText({ metadata: { message: '2 duplicate values of id: 7, 9', repeated: 2, examples: ['7', '9'] } })).toBe(
    '2 duplicate values of id: 7, 9',
  )
  expect(findingText({ metadata: { n: 3, where: 'eu' } })).toBe('n=3 where=eu')
  expect(findingText({ metadata: { error: 'no disk' } })).toBe('it threw: no disk')
  expect(findingText({ metadata: null })).toBe('')
})
