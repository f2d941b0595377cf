import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ScheduleDefined } from '../../src/domain/schedules/schedule-defined.event.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { foldAll } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'
import { isUnderstood, moves, withCopies } from '../../src/testing/histories/order.ts'
import { SimulatedWriter } from '../../src/testing/histories/writers.ts'

const ofType = (events: readonly Envelope[], type: string) =>
  events.filter((event) => event.event_type === type && isUnderstood(event))
const column = (rows: readonly Record<string, unknown>[] | undefined, name: string) => (rows ?? []).map((row) => row[name])

describe('schedules', () => {
  test('[I18] a tick recorded again, by whatever controller, changes nothing', () => {
    const reminted = (event: Envelope): boolean => ['ScheduleTicked', 'ScheduleTicksSkipped'].includes(event.event_type)
    const property = fc.property(deliveries(), moves, ({ events }, copied) => {
      const single = (foldAll(events)['schedule_ticks'] ?? []).filter((tick) => tick['tick_count'] === 1)
      const told = ofType(events, 'ScheduleTicked').map((event) => event.payload['tick_id'])
      expect(new Set(column(single, 'tick_id'))).toEqual(new Set(told))
      expect(foldAll(withCopies(events, copied, reminted))).toEqual(foldAll(events))
    })
    fc.assert(property, effort)
  })

  test('[I19] from a tick that triggered one gets to its run key, and from there to its run and back', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      for (const tick of rows['schedule_ticks'] ?? []) {
        const run = (rows['runs'] ?? []).find((row) => row['run_key'] === tick['run_key'])
        expect(tick['run_id']).toBe(run?.['run_id'] ?? null)
        if (tick['status'] !== 'triggered') continue
        expect(run).toMatchObject({
          trigger_type: 'schedule',
          trigger_source_ref: { tick_id: tick['tick_id'], schedule_id: tick['schedule_id'] },
          request_fingerprint: tick['request_fingerprint'],
        })
      }
    })
    fc.assert(property, effort)
  })

  test('[A2] a tick keeps the definition it was made with, whatever is declared before or after', () => {
    const places = fc.array(fc.nat({ max: 999 }), { minLength: 1, maxLength: 5 })
    const property = fc.property(deliveries(), places, ({ events }, at) => {
      const writer = new SimulatedWriter(9, 0, () => Date.parse('2025-01-15T10:00:00.000Z'))
      const redeclared = [...events]
      for (const [index, place] of at.entries()) {
        const declaration = {
          schedule_id: `schedule-${index % 2}`,
          schedule_name: 'changed',
          cron_expressions: ['* * * * *'],
          asset_selection: ['changed'],
          enabled: false,
          definition_hash: `changed-${index}`,
          request_id: `changed-${index}`,
        }
        redeclared.splice(Math.floor((place * events.length) / 1_000), 0, writer.write(ScheduleDefined, declaration))
      }
      const [before, after] = [foldAll(events), foldAll(redeclared)]
      expect(after['schedule_ticks']).toEqual(before['schedule_ticks'])
      expect(after['runs']).toEqual(before['runs'])
    })
    fc.assert(property, effort)
  })

  test('[I3] a schedule stands at its latest tick, in whatever order ticks arrive', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      for (const state of rows['schedule_state'] ?? []) {
        const mine = (rows['schedule_ticks'] ?? []).filter(
          (tick) => tick['schedule_id'] === state['schedule_id'] && !`${tick['tick_id']}`.includes('manual'),
        )
        const last = (tick: (typeof mine)[number]) => tick['scheduled_until'] ?? tick['scheduled_for']
        const latest = mine.sort((a, b) => last(b) - last(a))[0]
        expect(state).toMatchObject({
          last_scheduled_for: latest === undefined ? null : last(latest),
          last_tick_id: latest?.['tick_id'] ?? null,
          last_run_key: latest?.['run_key'] ?? null,
        })
      }
    })
    fc.assert(property, effort)
  })
})

describe('sensors', () => {
  test('[I18] an evaluation that is reported again, push or poll, changes nothing', () => {
    const reminted = (event: Envelope): boolean => event.event_type.startsWith('Sensor')
    const property = fc.property(deliveries(), moves, ({ events }, copied) => {
      expect(foldAll(withCopies(events, copied, reminted))).toEqual(foldAll(events))
    })
    fc.assert(property, effort)
  })

  test('[A3][A20][A22] an evaluation that is stale, failed or was not the first is recorded as such, and the runs it asked for are not made', () => {
    const property = fc.property(histories(), ({ events, world }) => {
      const rows = foldAll(events)
      const keys = new Set(column(rows['run_key_index'], 'run_key'))
      for (const refused of world.refused) assert(!keys.has(refused), `${refused} made a run`)
      const skipped = (rows['sensor_evals'] ?? []).filter((row) => row['status'] === 'skipped_stale_cursor')
      expect(column(skipped, 'eval_id').sort()).toEqual(world.sensors.flatMap((sensor) => sensor.stale).sort())
      for (const run of world.runs) assert(keys.has(run.runKey), `${run.runKey} made no run`)
    })
    fc.assert(property, effort)
  })

  test('[A20] a message has one evaluation that counts, whatever failed before and was delivered after', () => {
    const property = fc.property(deliveries(), ({ events, history }) => {
      const rows = foldAll(events)
      for (const { id, messages, dead } of history.world.sensors) {
        const mine = (rows['sensor_messages'] ?? []).filter((row) => row['sensor_id'] === id)
        expect(new Map(mine.map((row) => [row['message_id'], row['accepted_eval_id']]))).toEqual(messages)
        const counting = (rows['sensor_evals'] ?? []).filter(
          (row) => row['sensor_id'] === id && row['trigger_source'] === 'push' && row['accepted'],
        )
        expect(column(counting, 'eval_id').sort()).toEqual([...messages.values()].filter((one) => one !== null).sort())
        expect(mine.filter((row) => row['status'] === 'dead')).toHaveLength(dead)
        const state = (rows['sensor_state'] ?? []).find((row) => row['sensor_id'] === id)
        expect(state?.['dead_letters'] ?? 0).toBe(dead)
      }
    })
    fc.assert(property, effort)
  })

  test('[A22] a request for a run waits only for an evaluation that nobody has heard of', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      const heard = new Set(column(rows['sensor_evals'], 'eval_id'))
      for (const { envelope } of (rows['parked_events'] ?? []).filter((row) => row['reason'] === 'waiting')) {
        const source = envelope.payload.trigger_source_ref
        assert(!heard.has(source?.eval_id), `a request waits for ${source?.eval_id}, which is on record`)
      }
    })
    fc.assert(property, effort)
  })

  test('[I13] the polls that were accepted form one chain of cursors, broken only by resets', () => {
    const property = fc.property(deliveries(), ({ events, history }) => {
      const rows = foldAll(events)
      for (const { id, cursor, version, moved } of history.world.sensors) {
        const state = (rows['sensor_state'] ?? []).find((row) => row['sensor_id'] === id)
        expect([state?.['cursor'] ?? null, state?.['state_version'] ?? 0]).toEqual([cursor, version])
        const polls = (rows['sensor_evals'] ?? []).filter(
          (row) =>
            row['sensor_id'] === id && row['trigger_source'] === 'poll' && (row['accepted'] || row['status'] === 'error'),
        )
        polls.sort((a, b) => a['state_version'] - b['state_version'])
        expect(column(polls, 'eval_id')).toEqual(moved)
        for (const [index, poll] of polls.entries()) {
          const before = polls[index - 1]
          if (before === undefined || poll['state_version'] !== before['state_version'] + 1) continue
          const kept = before['status'] === 'error' ? null : before['cursor_after']
          expect(poll['cursor_before']).toBe(kept ?? before['cursor_before'])
        }
      }
    })
    fc.assert(property, effort)
  })
})
