import { expect, test } from 'vitest'
import { ulidFloor } from '../../../lib/ulid.ts'
import type { Envelope } from '../../../model/envelope.ts'
import { EventTail } from './event-tail.ts'

const all = { name: 'all', matches: () => true }

const event = (number: number, text = ''): Envelope => ({
  event_id: ulidFloor(number),
  event_type: 'Noted',
  event_version: 1,
  timestamp: '2026-01-01T00:00:00.000Z',
  source: 'test',
  tenant_id: 'acme',
  workspace_id: 'analytics',
  idempotency_key: String(number),
  payload: { text },
})

const some = (count: number, text?: string): Envelope[] => Array.from({ length: count }, (_, i) => event(i, text))

/** The number of events that can still be read. */
function kept(tail: EventTail): number {
  let count = 0
  while (count < tail.end && tail.read(tail.end - count - 1, all) !== undefined) count += 1
  return count
}

test('[X4] what is kept for all followers is bounded: ten thousand events, and eight mebibytes', () => {
  const many = new EventTail()
  many.follow(() => undefined)
  many.add(some(10_100))
  expect([many.end, many.read(99, all), many.read(100, all)?.last]).toEqual([10_100, undefined, expect.any(String)])
  const large = new EventTail()
  large.follow(() => undefined)
  large.add(some(100, 'x'.repeat(1 << 20)))
  expect(kept(large)).toBe(7)
})

test('[X4] nothing is kept while nobody follows', () => {
  const tail = new EventTail()
  tail.add(some(10))
  expect([tail.end, kept(tail)]).toEqual([10, 0])
  const leave = tail.follow(() => undefined)
  tail.add([event(10)])
  expect(kept(tail)).toBe(1)
  leave()
  tail.add([event(11)])
  expect(kept(tail)).toBe(0)
})
