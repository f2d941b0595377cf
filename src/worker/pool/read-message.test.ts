import { expect, test } from 'vitest'
import { readMessage } from './read-message.ts'

test('a message of a worker process is read as it is', () => {
  const message = { type: 'log', id: 'att_1', entries: [{ at: 1, stream: 'stdout', text: 'hello' }] }
  expect(readMessage(JSON.stringify(message))).toEqual(message)
})

test.each([
  'hello',
  'null',
  '5',
  '[]',
  '{}',
  '{"type":"toString"}',
  '{"type":"loaded"}',
  '{"type":"load_failed","problems":[null]}',
  '{"type":"log","id":"att_1","entries":[null]}',
  '{"type":"completed","id":"att_1"}',
  '{"type":"returned","ids":5}',
])('[W5] %s is not a message', (line) => {
  expect(() => readMessage(line)).toThrow()
})
