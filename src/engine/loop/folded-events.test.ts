import { expect, test } from 'vitest'
import type { Envelope } from '../../model/envelope.ts'
import { applied, duplicate, type Verdict } from '../../model/event.ts'
import type { CheckedEvent } from '../ledger/mint.ts'
import { FoldedEvents } from './folded-events.ts'

/** Folds events of these ids; those with a `!` are duplicates. */
function fold(folded: FoldedEvents, ...ids: string[]): void {
  const events = ids.map((event_id) => ({ event: { event_id } as Envelope }) as CheckedEvent)
  const verdicts = new Map<string, Verdict>(ids.map((id) => [id, id.endsWith('!') ? duplicate : applied]))
  folded.folded(events, verdicts)
}

test('events are told when their segment is durable, with their verdicts and the moment of their fold, each once and in order', () => {
  const told: string[] = []
  let now = 1
  const folded = new FoldedEvents(
    (event, { kind }, foldedAt) => told.push(`${event.event_id} ${kind} ${foldedAt}`),
    () => now++,
  )
  fold(folded, '1', '2!')
  fold(folded, '3')
  expect(told).toEqual([])
  folded.durable(2)
  expect(told).toEqual(['1 applied 1', '2! duplicate 1'])
  folded.durable(1)
  expect(told).toEqual(['1 applied 1', '2! duplicate 1', '3 applied 2'])
})

test('an event whose segment was written before it was folded is told when it is folded', () => {
  const told: string[] = []
  const folded = new FoldedEvents(
    (event) => told.push(event.event_id),
    () => 0,
  )
  fold(folded, '1')
  folded.durable(3)
  expect(told).toEqual(['1'])
  fold(folded, '2', '3', '4')
  expect(told).toEqual(['1', '2', '3'])
  folded.durable(1)
  expect(told).toEqual(['1', '2', '3', '4'])
})
