import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openJson, sealJson, sealText } from './checksummed-json.ts'

test('what was sealed comes back, and the same value has the same bytes in whatever order its members were set', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (drawn) => {
      // JSON has no minus zero.
      const value = JSON.parse(JSON.stringify(drawn)) as unknown
      if (JSON.stringify(value).includes('__proto__')) return
      expect(openJson('value', sealJson('value', value), 'file')).toEqual(value)
    }),
  )
  expect(sealJson('v', { a: 1, b: [2] })).toEqual(sealJson('v', { b: [2], a: 1 }))
})

test('it is JSON that any tool reads', () => {
  const text = Buffer.from(sealJson('order', [1, 'ä'])).toString()
  expect(JSON.parse(text)).toEqual({ order: [1, 'ä'], sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
})

test('[L2] a change of any bit of it is noticed, and so is anything before, after or instead of it', () => {
  const bytes = sealJson('events', [{ a: 'text', b: 12 }])
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = bytes.with(bit >> 3, bytes[bit >> 3]! ^ (1 << (bit & 7)))
    expect(() => openJson('events', changed, 'file'), `bit ${bit}`).toThrow(
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
    sealJson('other', 1),
  ]
  for (const other of wrong) expect(() => openJson('events', Uint8Array.from(other), 'file')).toThrow(/file is damaged/)
})

test('a right checksum over what is not JSON is refused like any other damage', () => {
  for (const body of ['[,]', '', '[1', 'undefined', '\u0000']) {
    expect(() => openJson('events', sealText('events', body), 'some/file')).toThrow(
      expect.objectContaining({ kind: 'corrupt', facts: { path: 'some/file' } }),
    )
  }
})

test('a part of a larger buffer is read as what it is', () => {
  const bytes = sealJson('v', { a: 1 })
  const larger = new Uint8Array(bytes.length + 20).fill(7)
  larger.set(bytes, 10)
  expect(openJson('v', larger.subarray(10, 10 + bytes.length), 'file')).toEqual({ a: 1 })
})
