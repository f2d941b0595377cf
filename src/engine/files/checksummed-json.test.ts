import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checksummedJson, checksummedText, readChecksummed } from './checksummed-json.ts'

test('what was written comes back, and the same value has the same bytes in whatever order its members were set', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (drawn) => {
      // JSON has no minus zero.
      const value = JSON.parse(JSON.stringify(drawn)) as unknown
      if (JSON.stringify(value).includes('__proto__')) return
      expect(readChecksummed('value', checksummedJson('value', value), 'file')).toEqual(value)
    }),
  )
  expect(checksummedJson('v', { a: 1, b: [2] })).toEqual(checksummedJson('v', { b: [2], a: 1 }))
})

test('it is JSON that any tool reads', () => {
  const text = Buffer.from(checksummedJson('order', [1, 'ä'])).toString()
  expect(JSON.parse(text)).toEqual({ order: [1, 'ä'], sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
})

test('[L2] a change of any bit of it is noticed, and so is anything before, after or instead of it', () => {
  const bytes = checksummedJson('events', [{ a: 'text', b: 12 }])
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = bytes.with(bit >> 3, bytes[bit >> 3]! ^ (1 << (bit & 7)))
    expect(() => readChecksummed('events', changed, 'file'), `bit ${bit}`).toThrow(
      expect.objectContaining({ kind: 'corrupt', code: 'checksum_mismatch' }),
    )
  }
  const wrong = [
    [],
    [123],
    bytes.subarray(1),
    bytes.subarray(0, -1),
    [...bytes, 10],
    [32, ...bytes],
    [...bytes, ...bytes],
    checksummedJson('other', 1),
  ]
  for (const other of wrong) expect(() => readChecksummed('events', Uint8Array.from(other), 'file')).toThrow(/file is damaged/)
})

test('a right checksum over what is not JSON is refused like any other damage', () => {
  for (const body of ['[,]', '', '[1', 'undefined', '\u0000']) {
    expect(() => readChecksummed('events', checksummedText('events', body), 'some/file')).toThrow(
      expect.objectContaining({ kind: 'corrupt', facts: { path: 'some/file' } }),
    )
  }
})

test('a part of a larger buffer is read as what it is', () => {
  const bytes = checksummedJson('v', { a: 1 })
  const larger = new Uint8Array(bytes.length + 20).fill(7)
  larger.set(bytes, 10)
  expect(readChecksummed('v', larger.subarray(10, 10 + bytes.length), 'file')).toEqual({ a: 1 })
})
