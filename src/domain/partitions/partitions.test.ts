import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/history-story.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { MaterializationReported } from './materialization-reported.event.ts'
import { partitionStatus } from './partition-status.table.ts'
import { PartitionWiped } from './partition-wiped.event.ts'

describe('a partition', () => {
  test('[L2-INV-8] a failure is its last attempt, and leaves its last materialization alone', () => {
    const story = new Story()
    const [good, bad] = [story.run('monday', { orders: [] }), story.run('tuesday', { orders: [] })]
    good.done('orders')
    bad.dispatched('orders')
    bad.gaveUp('orders')
    expect(story.row(partitionStatus, 'orders', '')).toMatchObject({
      last_materialization_run_id: good.runId,
      last_materialization_id: 'orders-1',
      last_attempt_run_id: bad.runId,
      last_attempt_outcome: 'FAILED',
    })
  })

  test('[L2-INV-8] of two materializations the later one counts, in whatever order they are reported', () => {
    const story = new Story()
    const report = { asset_key: 'orders', partition_key: '2025-01-15', reported_by: 'dbt' }
    story.tell(MaterializationReported, {
      ...report,
      report_id: 'r2',
      materialized_at: story.time(60),
      materialization_id: 'later',
    })
    story.tell(MaterializationReported, {
      ...report,
      report_id: 'r1',
      materialized_at: story.time(),
      materialization_id: 'sooner',
    })
    expect(story.row(partitionStatus, 'orders', '2025-01-15')).toMatchObject({
      last_materialization_id: 'later',
      last_materialization_run_id: null,
    })
  })

  test('of a range is noted like any other when the task that made them all ends', () => {
    const story = new Story()
    const run = new RunStory(story, 'january')
    run.requested()
    const keys = Array.from({ length: 10_000 }, (_, i) => `day=${i},region=eu`)
    const task = { task_key: 'orders[all]', asset_key: 'orders', partition_key: 'all', partition_values: { region: 'eu' } }
    const tasks = [{ ...task, partition_keys: keys }]
    story.tell(PlanCreated, { run_id: run.runId, plan_id: 'p', part: 0, parts: 1, tasks })
    run.done('orders[all]')
    const rows = story.rows(partitionStatus)
    expect(rows).toHaveLength(10_000)
    expect(story.row(partitionStatus, 'orders', 'day=7,region=eu')).toMatchObject({
      partition_values: { day: '7', region: 'eu' },
      last_materialization_id: 'orders[all]-1',
      last_attempt_outcome: 'SUCCEEDED',
    })
  })

  test('that is wiped keeps its past, with the moment up to which it does not count', () => {
    const story = new Story()
    story.run('monday', { orders: [] }).done('orders')
    story.tell(PartitionWiped, { request_id: 'w1', asset_key: 'orders', wiped_by: 'ada' })
    const status = story.row(partitionStatus, 'orders', '')
    expect(status?.last_materialization_id).toBe('orders-1')
    expect(status?.wiped_at).toBeGreaterThan(status?.last_materialization_at as number)
  })
})
