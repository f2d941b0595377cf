import { expect, test } from 'vitest'
import { LastLines } from './last-lines.ts'

test('the last lines are whole lines, and no more than an error can show', () => {
  const printed = new LastLines(String)
  expect(String(printed)).toBe('')
  for (let i = 0; i < 1_000; i++) printed.print(`line ${i}\n`)
  const lines = String(printed).split('\n')
  expect(lines.at(-1)).toBe('line 999')
  expect(lines.at(0)).toMatch(/^line \d+$/)
  expect(String(printed).length).toBeLessThanOrEqual(2_000)
})

test('a line without an end is cut, wherever its pieces were cut', () => {
  const printed = new LastLines(String)
  printed.print(Buffer.from('x'.repeat(100_000)))
  expect(String(printed)).toBe('x'.repeat(2_000))
  const words = new LastLines(String)
  const bytes = Buffer.from('schön\n')
  for (const byte of bytes) words.print(Uint8Array.of(byte))
  expect(String(words)).toBe('schön')
})

test('a secret at the cut is not left in half', () => {
  const secret = 'abcdefgh'
  const printed = new LastLines((text) => text.replaceAll(secret, '[secret]'))
  printed.print(secret + 'x'.repeat(1_995))
  expect(String(printed)).not.toContain('efgh')
  printed.print('y'.repeat(10_000) + secret)
  expect(String(printed)).toMatch(/^y+\[secret\]$/)
})
