import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineReader } from './lines.ts'

test('lines come out as they went in, however the pipe cuts them', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' '))
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''))
      const heard: string[] = []
      const read = lineReader((text) => heard.push(text))
      for (let start = 0, i = 0; start < bytes.length; i++) {
        const end = start + (cuts[i % cuts.length] as number)
        read(bytes.subarray(start, end))
        start = end
      }
      expect(heard).toEqual(lines)
    }),
  )
})

test('a long line in many pieces costs its length once', () => {
  let heard = 0
  const read = lineReader((text) => {
    heard = text.length
  })
  const piece = Buffer.alloc(1_024, 'x')
  // Putting the pieces together at each arrival would move 50 GB.
  for (let i = 0; i < 10_000; i++) read(piece)
  read(Buffer.from('\n'))
  expect(heard).toBe(10_000 * 1_024)
})

test('a line that is too long is let go, and what comes after it is read', () => {
  const lines: string[] = []
  let exceeded = 0
  const read = lineReader((line) => void lines.push(line), { bytes: 10, exceeded: () => void exceeded++ })
  for (const chunk of ['123456789', '0', '\nab', 'cdefghij', 'k', 'lmn\nend\n']) read(Buffer.from(chunk))
  expect({ lines, exceeded }).toEqual({ lines: ['1234567890', 'lmn', 'end'], exceeded: 1 })
})
