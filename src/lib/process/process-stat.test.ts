import { describe, expect, test } from 'vitest'
import { processStat } from './process-stat.ts'

const rest = '1 7 7 0 -1 4194560 1204 88 0 0 3 1 0 0 20 0 1 0 90012 12345 678'

describe('the line of a process in /proc', () => {
  test('is read behind its name, whatever that holds', () => {
    const expected = { state: 'S', parent: 1, group: 7, childFaults: '88', beganAt: '90012' }
    for (const name of ['node', 'a b', ') Z 9 9 (', '']) expect(processStat(`42 (${name}) S ${rest}\n`), name).toEqual(expected)
  })

  test('that is missing or malformed gives undefined', () => {
    for (const text of [undefined, '', '42 (node) S 1', 'nonsense']) expect(processStat(text)).toBeUndefined()
  })
})
