import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backfills, isBackfillOver } from '../../src/domain/backfills/backfills.table.ts'
import { isRunOver, runs } from '../../src/domain/runs/runs.table.ts'
import { SensorEvaluated } from '../../src/domain/sensors/sensor-evaluated.event.ts'
import { isTaskOver, tasks } from '../../src/domain/tasks/tasks.table.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { parkedEvents } from '../../src/model/system-tables.ts'
import { Bench, foldAll } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'
import { isUnderstood } from '../../src/testing/histories/order.ts'
import { SimulatedWriter } from '../../src/testing/histories/writers.ts'

describe('parked facts', () => {
  test('[F7] what Servo does not understand is kept, each event once, and never dropped', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const kept = (foldAll(events)['parked_events'] ?? []).filter((row) => row['reason'] !== 'waiting')
      const strange = events.filter((event) => !isUnderstood(event))
      expect(new Set(kept.map((row) => row['event_id']))).toEqual(new Set(strange.map((event) => event.event_id)))
      for (const row of kept) expect(strange).toContainEqual(row['envelope'])
    })
    fc.assert(property, effort)
  })

  test('[F7] facts that only a newer version understands count as soon as it runs, as if they had come then', () => {
    const types = [
      'TaskHeartbeat',
      'DispatchEnqueued',
      'DispatchRepeated',
      'TimerRequested',
      'MaterializationReported',
      'PartitionWiped',
      'AssetsDefined',
    ]
    const property = fc.property(histories(), fc.subarray(types), fc.nat({ max: 999 }), ({ events }, unknown, at) => {
      const bench = new Bench((type) => !unknown.includes(type))
      const upgrade = Math.floor((at * events.length) / 1_000)
      const before = events.slice(0, upgrade)
      bench.fold(before)
      bench.upgrade()
      bench.fold(events.slice(upgrade))
      const isUnknown = ({ event_type }: Envelope): boolean => unknown.includes(event_type)
      const understood = before.filter((event) => !isUnknown(event))
      expect(bench.rows()).toEqual(foldAll([...understood, ...before.filter(isUnknown), ...events.slice(upgrade)]))
    })
    fc.assert(property, effort)
  })

  test('[F6] nothing waits for a run or a backfill that is over, or for an attempt that has passed', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      bench.fold(events, () => {
        for (const { envelope, reason } of bench.state.hot(parkedEvents).all()) {
          if (reason !== 'waiting') continue
          const { event_type, payload } = envelope as Envelope
          const { run_id, task_key, attempt, timer_type, backfill_id } = payload as Record<string, string> & {
            attempt?: number
          }
          const backfill = backfill_id === undefined ? undefined : bench.state.hot(backfills).get(backfill_id)
          assert(
            backfill === undefined || !isBackfillOver(backfill.state),
            `${event_type} waits for a backfill that is ${backfill?.state}`,
          )
          // A request waits for its evaluation and a chunk for its backfill, not for the run.
          if (run_id === undefined || event_type === 'RunRequested' || event_type === 'BackfillChunkPlanned') continue
          const run = bench.state.hot(runs).get(run_id)
          assert(run === undefined || !isRunOver(run.state), `${event_type} waits for a run that is ${run?.state}`)
          const task = task_key === undefined ? undefined : bench.state.hot(tasks).get(run_id, task_key)
          // A deadline outlives attempts.
          if (task === undefined || attempt === undefined || timer_type === 'SLA_CHECK') continue
          assert(
            !isTaskOver(task.state) && attempt >= task.attempt,
            `${event_type} of attempt ${attempt} waits for ${task.attempt}, ${task.state}`,
          )
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[I2] who waited before leaves no trace: a process that starts anew parks the next fact at the same place', () => {
    const poll = (number: number) => ({
      sensor_id: 'files',
      begun: `${number}`,
      trigger_source: { source: 'poll', state_version: number },
      cursor_before: number === 0 ? null : `${number}`,
      cursor_after: `${number + 1}`,
      status: 'no_new_data',
    })
    const now = () => Date.parse('2025-01-15T10:00:00.000Z')
    const [punctual, ahead] = [new SimulatedWriter(1, 0, now), new SimulatedWriter(2, 3_600_000, now)]
    const [stays, restarts] = [new Bench(), new Bench()]
    for (const bench of [stays, restarts]) {
      bench.fold([ahead.write(SensorEvaluated, poll(1))])
      expect(bench.parking()).toHaveLength(1)
      bench.fold([punctual.write(SensorEvaluated, poll(0))])
      expect(bench.parking()).toEqual([])
    }
    restarts.restart()
    const next = punctual.write(SensorEvaluated, poll(5))
    for (const bench of [stays, restarts]) bench.fold([next])
    expect(stays.parking()).toEqual([['sensor:files', next.event_id, now()]])
    expect(restarts.parking()).toEqual(stays.parking())
  })
})
