import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parsePythonJson } from './python-json.ts'

test.each<[string, string, unknown]>([
  ['numbers that JSON does not have', '{"a": NaN, "b": [Infinity, -Infinity]}', { a: 'NaN', b: ['Infinity', '-Infinity'] }],
  [
    'their names in texts',
    '{"NaN": "NaN, \\"Infinity\\" -Infinity", "x": NaN}',
    { NaN: 'NaN, "Infinity" -Infinity', x: 'NaN' },
  ],
  [
    'integers with all their digits',
    '[9007199254740993, -12345678901234567890, 9007199254740991]',
    ['9007199254740993', '-12345678901234567890', 9007199254740991],
  ],
  [
    'digits in texts, and fractions',
    '["12345678901234567890", 0.1234567890123456789, 1e+22, 1.5E-7]',
    ['12345678901234567890', 0.12345678901234568, 1e22, 1.5e-7],
  ],
  ['numbers that are too large', '[1e400, -1E+999, 1e300, "1e400"]', ['1e400', '-1E+999', 1e300, '1e400']],
  ['both together', '[NaN, 12345678901234567890]', ['NaN', '12345678901234567890']],
  ['halves of characters', '{"a\\udc00": "x\\ud800y", "pair": "\\ud83d\\ude00"}', { 'a\ufffd': 'x\ufffdy', pair: '😀' }],
  ['a backslash before the end of a text', '["\\\\", NaN]', ['\\', 'NaN']],
])('keeps %s', (_, text, value) => {
  expect(parsePythonJson(text)).toEqual(value)
})

test('leaves out what would change an object itself', () => {
  expect(parsePythonJson('{"a": {"__proto__": {"b": 1}, "c": 2}}')).toEqual({ a: { c: 2 } })
})

test('reads all other JSON as JSON, and nothing else', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(parsePythonJson(JSON.stringify(value))).toEqual(wellRead(value))
    }),
  )
  for (const wrong of ['', 'NaNa', '{"a": nan}', '[1,]', '+1', '12345678901234567890a'])
    expect(() => parsePythonJson(wrong), wrong).toThrow(SyntaxError)
})

/** What JSON makes of it, with integers beyond 2^53 as text. */
function wellRead(value: unknown): unknown {
  if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value))
    return /e/.test(String(value)) ? value : String(value)
  if (Array.isArray(value)) return value.map(wellRead)
  if (typeof value !== 'object' || value === null) return JSON.parse(JSON.stringify(value))
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== '__proto__')
      .map(([name, one]) => [name, wellRead(one)]),
  )
}
