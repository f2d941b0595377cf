import { expect, test } from 'vitest'
import { jsonMistake } from './json-mistake.ts'

test.each([
  ['{\n  "a": 1\n  "b": 2\n}', 'unexpected "\\""', 3, 3],
  ['{ "a": \n}', 'unexpected "}"', 2, 1],
  ['{\n  "a": ', 'it ends too soon', 2, 8],
  ['[1, 2,]', 'unexpected "]"', 1, 7],
  ["{'a': 1}", 'unexpected "\'"', 1, 2],
  ['{} x', 'unexpected "x"', 1, 4],
  ['{ "a": "\tb" }', 'unexpected "\\""', 1, 8],
  ['', 'it ends too soon', 1, 1],
])('%j: %s at %i:%i', (text, what, line, column) => {
  expect(() => JSON.parse(text)).toThrow()
  expect(jsonMistake(text)).toEqual({ what, line, column })
})

test.each(['{}', ' [1, -2.5e3, "a\\u00e9\\n", true, null, {"b": {}}] ', '0'])('nothing is wrong with %j', (text) => {
  JSON.parse(text)
  expect(jsonMistake(text)).toBeUndefined()
})
