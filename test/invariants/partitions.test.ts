import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Envelope } from '../../src/model/envelope.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { foldAll, type Snapshot } from '../../src/testing/histories/fold.ts'
import { deliveries, effort } from '../../src/testing/histories/histories.ts'

interface Moment {
  readonly at: number
  readonly event: string
  /** In the order of the record. */
  readonly place: number
}

/** Where a fact stands that an event tells of: later than its time by as much as the clock was behind. */
const placeOf = ({ behind_ms, timestamp }: Pick<Envelope, 'behind_ms' | 'timestamp'>, at: number): number =>
  behind_ms === undefined ? at : Math.min(at, Date.parse(timestamp)) + behind_ms

const latest = <T extends Moment>(moments: T[]): T | undefined =>
  moments.sort((a, b) => b.place - a.place || (a.event < b.event ? 1 : -1))[0]

const partitionsOf = (task: AnyRow): readonly unknown[] =>
  (task['partition_keys'] as string[] | null) ?? [task['partition_key'] ?? '']

/** Attempts that ended, by the partition they were at. */
function attemptsAt(rows: Snapshot, asset: string, partition: string): AnyRow[] {
  const isHere = (task: AnyRow): boolean => task['asset_key'] === asset && partitionsOf(task).includes(partition)
  const here = new Set((rows['tasks'] ?? []).filter(isHere).map((task) => `${task['run_id']} ${task['task_key']}`))
  return (rows['task_attempts'] ?? []).filter(
    (row) => row['outcome'] !== null && here.has(`${row['run_id']} ${row['task_key']}`),
  )
}

describe('partitions', () => {
  test('[P10][P20] a partition shows the latest of its materializations and the latest of its attempts, in whatever order they met', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      const envelopes = new Map(events.map((event) => [event.event_id, event]))
      // Of a report that came twice the first counts.
      const reported = events.filter((event) => event.event_type === 'MaterializationReported').toReversed()
      const reports = new Map(reported.map((event) => [event.payload['report_id'], event]))
      for (const status of rows['partition_status'] ?? []) {
        const { asset_key: asset, partition_key: partition } = status as { asset_key: string; partition_key: string }
        const attempts = attemptsAt(rows, asset, partition).map((row) => ({
          at: row['finished_at'],
          place: placeOf(envelopes.get(row['row_version'])!, row['finished_at']),
          event: row['row_version'],
          row,
          version: (row['output'] as { data_version?: string }).data_version,
        }))
        const outside = [...reports.values()]
          .filter(({ payload }) => payload['asset_key'] === asset && payload['partition_key'] === partition)
          .map((event) => ({
            at: Date.parse(event.payload['materialized_at'] as string),
            place: placeOf(event, Date.parse(event.payload['materialized_at'] as string)),
            event: event.event_id,
            row: undefined,
            version: event.payload['data_version'],
          }))
        const success = latest([...attempts.filter(({ row }) => row['outcome'] === 'SUCCEEDED'), ...outside])
        const attempt = latest(attempts)
        expect(status).toMatchObject({
          last_materialization_at: success?.at ?? null,
          last_materialization_event_id: success?.event ?? null,
          last_materialization_run_id: success?.row?.['run_id'] ?? null,
          last_materialization_id: success?.row?.['materialization_id'] ?? null,
          last_materialization_data_version: success?.version ?? null,
          last_materialization_inputs_at: success?.row?.['dispatched_at'] ?? success?.at ?? null,
          last_attempt_at: attempt?.at ?? null,
          last_attempt_event_id: attempt?.event ?? null,
          last_attempt_outcome: attempt?.row['outcome'] ?? null,
        })
        const versions = (rows['data_versions'] ?? []).filter(
          (row) => row['asset_key'] === asset && row['partition_key'] === partition,
        )
        const successes = [...attempts.filter(({ row }) => row['outcome'] === 'SUCCEEDED'), ...outside]
        const byEvent = (a: unknown[], b: unknown[]): number => (String(a[0]) < String(b[0]) ? -1 : 1)
        expect(versions.map((row) => [row['event_id'], row['materialized_at'], row['data_version']]).sort(byEvent)).toEqual(
          successes.map(({ event, at, version }) => [event, at, version ?? null]).sort(byEvent),
        )
      }
    })
    fc.assert(property, effort)
  })

  test('[P10] every partition that somebody tried to make is listed', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      const listed = new Set((rows['partition_status'] ?? []).map((row) => `${row['asset_key']} ${row['partition_key']}`))
      const ended = new Set(
        (rows['task_attempts'] ?? [])
          .filter((row) => row['outcome'] !== null)
          .map((row) => `${row['run_id']} ${row['task_key']}`),
      )
      for (const task of rows['tasks'] ?? []) {
        if (task['asset_key'] !== null && ended.has(`${task['run_id']} ${task['task_key']}`))
          for (const partition of partitionsOf(task)) expect(listed).toContain(`${task['asset_key']} ${partition}`)
      }
    })
    fc.assert(property, effort)
  })
})
