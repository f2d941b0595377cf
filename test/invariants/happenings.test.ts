import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sensorHappenings } from '../../src/domain/sensors/happenings/sensor-happenings.table.ts'
import { foldAll } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'

describe('sensors that watch', () => {
  test('[A57][A58][A59] have accepted, or wait for, what happened while they watched and nothing else, each once', () => {
    const property = fc.property(deliveries(), ({ events, history }) => {
      const rows = foldAll(events)
      for (const { id, waiting, accepted } of history.world.watchers) {
        const mine = (table: string) => (rows[table] ?? []).filter((row) => row['sensor_id'] === id)
        expect(new Map(mine(sensorHappenings.name).map((row) => [row['message_id'], row['dead']]))).toEqual(waiting)
        const evaluated = mine('sensor_messages').filter((row) => row['status'] === 'accepted')
        expect(new Set(evaluated.map((row) => row['message_id']))).toEqual(accepted)
        expect(mine('sensor_state')[0]?.['happenings_waiting'] ?? 0).toBe(waiting.size)
      }
    })
    fc.assert(property, effort)
  })

  test('every kind of happening waits, dies and is accepted in some generated history', () => {
    const seen = new Set<string>()
    for (const { world } of fc.sample(histories(), { numRuns: 200, seed: 1 })) {
      for (const { waiting, accepted } of world.watchers) {
        for (const id of accepted) seen.add(`accepted ${id.split(':')[0]}`)
        for (const [id, dead] of waiting) seen.add(`${dead ? 'dead' : 'waiting'} ${id.split(':')[0]}`)
      }
    }
    const kinds = ['materialized', 'check_failed', 'run']
    expect([...seen].sort()).toEqual(
      ['accepted', 'dead', 'waiting'].flatMap((was) => kinds.map((kind) => `${was} ${kind}`)).sort(),
    )
  })
})
