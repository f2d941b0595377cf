import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { SensorEvaluated } from '../sensors/sensor-evaluated.event.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { TaskFinished } from '../tasks/task-finished.event.ts'
import { dynamicPartitions } from './dynamic-partitions.table.ts'
import { MaterializationReported } from './materialization-reported.event.ts'
import { PartitionKeysAdded } from './partition-keys-added.event.ts'
import { PartitionKeysRemoved } from './partition-keys-removed.event.ts'
import { partitionStatus } from './partition-status.table.ts'
import { PartitionWiped } from './partition-wiped.event.ts'

describe('a partition', () => {
  test('[P10] a failure is its last attempt, and leaves its last materialization alone', () => {
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

  test('[P10] of two materializations the later one counts, in whatever order they are reported', () => {
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

  test('[P15] of a range is noted like any other when the task that made them all ends', () => {
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

  test('[P9] that is wiped keeps its past, with the moment up to which it does not count, by whom and why', () => {
    const story = new Story()
    story.run('monday', { orders: [] }).done('orders')
    story.tell(PartitionWiped, { request_id: 'w1', asset_key: 'orders', wiped_by: 'ada', reason: 'wrong prices' })
    const status = story.row(partitionStatus, 'orders', '')
    expect(status?.last_materialization_id).toBe('orders-1')
    expect(status?.wiped_at).toBeGreaterThan(status?.last_materialization_at as number)
    expect(status).toMatchObject({ wiped_by: 'ada', wiped_reason: 'wrong prices' })
  })
})

describe('the keys of a dynamic set', () => {
  const keysOf = (story: Story): string[] =>
    story
      .rows(dynamicPartitions)
      .filter(({ present }) => present)
      .map(({ partition_key }) => partition_key)
  const customers = (...keys: string[]) => [{ set_name: 'customers', keys }]

  test('[P6] are as the latest fact about each says, in whatever order facts are heard', () => {
    const story = new Story()
    const said = { set_name: 'customers', keys: ['acme'], changed_by: 'ada' }
    const added = story.write(PartitionKeysAdded, { ...said, request_id: 'r1' })
    const removed = story.write(PartitionKeysRemoved, { ...said, request_id: 'r2' })
    story.hear(removed)
    story.hear(added)
    expect(keysOf(story)).toEqual([])
    story.tell(PartitionKeysAdded, { ...said, request_id: 'r1' })
    expect(keysOf(story), 'the same request again is no news').toEqual([])
  })

  test('[P7] change with the end of an attempt that succeeded, and tell which task it was', () => {
    const story = new Story()
    const run = story.run('monday', { orders: [] })
    run.dispatched('orders')
    story.tell(TaskFinished, {
      ...run.attempt('orders'),
      outcome: 'SUCCEEDED',
      completed_at: story.time(),
      partition_keys_added: customers('acme'),
    })
    expect(story.row(dynamicPartitions, 'customers', 'acme')).toMatchObject({
      present: true,
      changed_by: `task:${run.runId}:orders`,
    })
  })

  test('[P7] do not change with an attempt that failed, or that was given up before it told of its end', () => {
    const story = new Story()
    const run = story.run('monday', { orders: [] }, { attempts: 2 })
    const end = { completed_at: story.time(), partition_keys_added: customers('acme') }
    run.dispatched('orders')
    story.tell(TaskFinished, { ...run.attempt('orders'), ...end, outcome: 'FAILED' })
    const late = story.tell(TaskFinished, { ...run.attempt('orders'), ...end, outcome: 'SUCCEEDED' })
    expect(late.kind).toBe('ignored')
    expect(keysOf(story)).toEqual([])
  })

  test('[P7][A3] change with the evaluation of a sensor if that counts, and not if another was faster or it failed', () => {
    const story = new Story()
    const poll = (number: number, state_version: number, status: 'no_new_data' | 'error', key: string) =>
      story.tell(SensorEvaluated, {
        sensor_id: 'crm',
        begun: `${number}`,
        trigger_source: { source: 'poll', state_version },
        status,
        error: status === 'error' ? 'no route to host' : null,
        partition_keys_added: customers(key),
      })
    poll(1, 0, 'no_new_data', 'first')
    poll(2, 0, 'no_new_data', 'stale')
    poll(3, 1, 'error', 'failed')
    expect(keysOf(story)).toEqual(['first'])
  })
})
