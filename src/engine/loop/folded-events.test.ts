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

test('events are told with their verdicts when their segment is durable, each once and in order', () => {
  const told: string[] = []
  const folded = new FoldedEvents({ onRecorded: (event, { kind }) => told.push(`${event.event_id} ${kind}`) })
  fold(folded, '1', '2!')
  fold(folded, '3')
  expect(told).toEqual([])
  folded.durable(2)
  expect(told).toEqual(['1 applied', '2! duplicate'])
  folded.durable(1)
  expect(told).toEqual(['1 applied', '2! duplicate', '3 applied'])
})

test('an event whose segment was written before it was folded is told when it is folded', () => {
  const told: string[] = []
  const folded = new FoldedEvents({ onRecorded: (event) => told.push(event.event_id) })
  fold(folded, '1')
  folded.durable(3)
  expect(told).toEqual(['1'])
  fold(folded, '2', '3', '4')
  expect(told).toEqual(['1', '2', '3'])
  folded.durable(1)
  expect(told).toEqual(['1', '2', '3', '4'])
})

test('events of other processes are told in their place: behind those of this process that are not durable yet', () => {
  const told: string[] = []
  const folded = new FoldedEvents({ onEvents: (events) => told.push(events.map(({ event_id }) => event_id).join(' ')) })
  folded.foldedOthers([{ event_id: 'a' } as Envelope])
  fold(folded, '1', '2')
  folded.foldedOthers([{ event_id: 'b' }, { event_id: 'c' }] as Envelope[])
  fold(folded, '3')
  expect(told).toEqual(['a'])
  folded.durable(2)
  expect(told).toEqual(['a', '1 2 b c'])
  folded.durable(1)
  expect(told).toEqual(['a', '1 2 b c', '3'])
})
