import { expect, test } from 'vitest'
import { z } from 'zod'
import { col } from '../../model/column.ts'
import type { Envelope } from '../../model/envelope.ts'
import { applied, defineEvent, waitFor } from '../../model/event.ts'
import { idempotencyKeys } from '../../model/system-tables.ts'
import { defineTable } from '../../model/table.ts'
import { EventFold } from './event-fold.ts'
import { State } from './state.ts'

const doors = defineTable({
  name: 'doors',
  doc: 'Doors.',
  key: ['door'],
  storage: { kind: 'hot' },
  columns: { door: col.string('The door.'), opened: col.int('How often it was opened.') },
})

const Built = defineEvent({
  type: 'Built',
  version: 1,
  doc: 'A door was built.',
  payload: z.object({ door: z.string() }),
  idempotencyKey: ({ door }) => `built:${door}`,
  dedup: 'key',
  fold({ event, payload: { door }, rows, wake }) {
    rows.hot(doors).insert({ door, opened: 0, row_version: event.event_id })
    wake(door)
    return applied
  },
})

const Opened = defineEvent({
  type: 'Opened',
  version: 1,
  doc: 'A door was opened.',
  payload: z.object({ door: z.string(), by: z.string() }),
  idempotencyKey: ({ door, by }) => `opened:${door}:${by}`,
  dedup: 'key',
  fold({ payload: { door }, rows }) {
    const row = rows.hot(doors).edit(door)
    if (row === undefined) return waitFor(door)
    row.opened += 1
    return applied
  },
})

test('[F9] a fact that waits uses up no key: told again in time it counts, and only then is its key taken', () => {
  const registry = { tables: [doors], events: [Built, Opened] }
  const state = new State(registry)
  const fold = new EventFold(registry, state)
  const tell = (event_type: 'Built' | 'Opened', number: number) => {
    const event: Envelope = {
      event_id: `01K0000000000000000000000${number}`,
      event_type,
      event_version: 1,
      timestamp: '2025-01-15T10:00:00.000Z',
      source: 'test',
      tenant_id: 'acme',
      workspace_id: 'analytics',
      idempotency_key: `${number}`,
      payload: event_type === 'Built' ? { door: 'front' } : { door: 'front', by: 'ada' },
    }
    for (const { table, key } of fold.reads([event])) state.coldTable(table).provide([key[0]], undefined)
    return fold.fold(event).kind
  }
  const isTaken = () => state.cold(idempotencyKeys).lookup('opened:front:ada') !== undefined
  expect([tell('Opened', 1), isTaken()]).toEqual(['parked', false])
  expect([tell('Opened', 2), isTaken()]).toEqual(['parked', false])
  expect([tell('Built', 3), isTaken()]).toEqual(['applied', true])
  expect(tell('Opened', 4)).toBe('duplicate')
  expect(state.hot(doors).get('front')?.opened, 'both told the same').toBe(1)
})
