import { describe, expect, test } from 'vitest'
import type { SensorDefinitionInput } from '../../../contract/sensor.ts'
import { RunStory, Story } from '../../../testing/histories/story.ts'
import { MaterializationReported } from '../../partitions/materialization-reported.event.ts'
import { PlanCreated } from '../../tasks/plan-created.event.ts'
import { TaskFinished } from '../../tasks/task-finished.event.ts'
import { evalIdOf, runKeyOfEvaluation } from '../evaluation-ids.ts'
import { SensorDefined } from '../sensor-defined.event.ts'
import { SensorEvaluated } from '../sensor-evaluated.event.ts'
import { SensorMessageReplayed } from '../sensor-message-replayed.event.ts'
import { SensorPaused } from '../sensor-paused.event.ts'
import { SensorRemoved } from '../sensor-removed.event.ts'
import { sensorState } from '../sensor-state.table.ts'
import { sensorHappenings } from './sensor-happenings.table.ts'
import { sensorWatches } from './sensor-watches.table.ts'

let requests = 0
type Config = SensorDefinitionInput['config']

function declare(story: Story, sensor_id: string, config: Config, more: Partial<SensorDefinitionInput> = {}): void {
  requests += 1
  const ids = { definition_hash: `hash-${requests}`, request_id: `r${requests}` }
  story.tell(SensorDefined, { sensor_id, sensor_name: sensor_id, config, ...ids, ...more })
}

const onOrders: Config = { type: 'asset', assets: ['orders'] }
const waiting = (story: Story, sensor = 'watcher') =>
  story.rows(sensorHappenings).filter(({ sensor_id, dead }) => sensor_id === sensor && !dead)
const idsOf = (story: Story, sensor = 'watcher') => waiting(story, sensor).map(({ message_id }) => message_id)
const report = (story: Story, report_id: string, asset_key: string, partition_key = '') =>
  story.tell(MaterializationReported, {
    report_id,
    asset_key,
    partition_key,
    materialized_at: story.time(),
    reported_by: 'dbt',
  })

function evaluate(story: Story, message_id: string, attempt: number, failed = false, run_keys: string[] = []) {
  const source = { source: 'push', message_id, try: attempt, max_tries: 2 } as const
  const status = failed ? ('error' as const) : run_keys.length > 0 ? ('triggered' as const) : ('no_new_data' as const)
  const facts = { sensor_id: 'watcher', trigger_source: source, begun: `b${attempt}`, status, run_keys }
  story.tell(SensorEvaluated, { ...facts, ...(failed && { error: 'it did not work' }) })
  return evalIdOf('watcher', source, `b${attempt}`)
}

describe('an asset sensor', () => {
  test('[A57] hears of each materialization of what it watches once, by a run or by a report', () => {
    const story = new Story()
    declare(story, 'watcher', { type: 'asset', assets: ['orders', 'mart/*'] })
    const run = story.run('nightly', { orders: [], 'mart/eu/revenue': ['orders'], costs: [] })
    run.done('orders', 'mart/eu/revenue', 'costs')
    expect(run.succeeded('orders')).toMatchObject({ kind: 'ignored' })
    report(story, 'r1', 'orders', '2025-01-15')
    expect(report(story, 'r1', 'orders', '2025-01-15')).toEqual({ kind: 'duplicate' })
    const { runId: run_id } = run
    expect(waiting(story).map(({ message_id, happening }) => ({ message_id, ...happening }))).toMatchObject([
      {
        message_id: 'materialized:report:r1',
        type: 'materialized',
        asset_key: 'orders',
        partition_key: '2025-01-15',
        run_id: null,
      },
      { message_id: `materialized:${run_id}:mart%2Feu%2Frevenue:1`, asset_key: 'mart/eu/revenue', partition_key: null, run_id },
      { message_id: `materialized:${run_id}:orders:1`, type: 'materialized', asset_key: 'orders' },
    ])
    expect(story.row(sensorState, 'watcher')).toMatchObject({ happenings_waiting: 3, happenings_dropped: 0 })
  })

  test('[A57] hears of every partition that a task with a range makes', () => {
    const story = new Story()
    declare(story, 'watcher', { type: 'asset', assets: ['*'] })
    const run = new RunStory(story, 'backfill')
    run.requested()
    const range = { partition_key: 'a..b', partition_keys: ['a', 'b'] }
    const tasks = [{ task_key: 'orders', asset_key: 'orders', depends_on: [], ...range }]
    story.tell(PlanCreated, { run_id: run.runId, plan_id: 'plan', part: 0, parts: 1, tasks })
    run.done('orders')
    expect(waiting(story).map(({ happening }) => 'partition_key' in happening && happening.partition_key)).toEqual(['a', 'b'])
  })

  test('[A58] hears of failed checks once the task has ended: an attempt that is retried is no news, a warning is', () => {
    const story = new Story()
    declare(story, 'watcher', { type: 'asset', assets: ['orders'], happenings: ['check_failed'] })
    const run = story.run('nightly', { orders: [] }, { attempts: 2 })
    const checks = (severity: string) => [
      { name: 'fresh', ok: false, severity },
      { name: 'whole', ok: true, severity: 'error' },
    ]
    const finish = (attempt: number, outcome: 'FAILED' | 'SUCCEEDED', severity: string) =>
      story.tell(TaskFinished, {
        ...run.attempt('orders', attempt),
        outcome,
        completed_at: story.time(),
        output: { checks: checks(severity) },
      })
    run.dispatched('orders')
    finish(1, 'FAILED', 'error')
    expect(waiting(story)).toEqual([])
    run.retryDue('orders')
    run.dispatched('orders', 2)
    finish(2, 'SUCCEEDED', 'warn')
    const message_id = `check_failed:${run.runId}:orders:2`
    expect(waiting(story)).toMatchObject([
      { message_id, happening: { type: 'check_failed', checks: ['fresh'], severity: 'warn', asset_key: 'orders' } },
    ])

    const other = story.run('again', { orders: [] })
    other.dispatched('orders')
    story.tell(TaskFinished, {
      ...other.attempt('orders'),
      outcome: 'FAILED',
      completed_at: story.time(),
      output: { checks: checks('error') },
    })
    expect(
      waiting(story)
        .map(({ happening }) => 'severity' in happening && happening.severity)
        .sort(),
    ).toEqual(['error', 'warn'])
  })

  test('[A57] that watches a renamed asset hears of a task that began under the former key', () => {
    const story = new Story()
    const run = story.run('nightly', { 'old/orders': [] })
    run.dispatched('old/orders')
    const config: Config = { type: 'asset', assets: ['orders'] }
    const ids = { definition_hash: 'h', request_id: 'renamed' }
    const watches = ['old/orders', 'orders']
    story.tell(SensorDefined, { sensor_id: 'watcher', sensor_name: 'w', config, watches, ...ids })
    run.succeeded('old/orders')
    expect(waiting(story)).toMatchObject([{ happening: { asset_key: 'old/orders' } }])
  })
})

describe('a run sensor', () => {
  test('[A57] hears of runs that end in the states it watches, or only of those with an asset it watches', () => {
    const story = new Story()
    declare(story, 'watcher', { type: 'run', states: ['FAILED', 'CANCELLED'] })
    declare(story, 'of mart', { type: 'run', states: ['SUCCEEDED', 'FAILED', 'CANCELLED'], assets: ['mart/*'] })
    const good = story.run('good', { 'mart/revenue': [], orders: [] })
    good.done('mart/revenue', 'orders')
    const bad = story.run('bad', { orders: [], costs: ['orders'] })
    bad.dispatched('orders')
    bad.gaveUp('orders')
    const unplanned = new RunStory(story, 'unplanned')
    unplanned.requested(['mart/costs'])
    unplanned.cancelled()
    const [ofBad, ofUnplanned] = [`run:${bad.runId}:FAILED`, `run:${unplanned.runId}:CANCELLED`]
    expect(idsOf(story)).toEqual([ofBad, ofUnplanned].sort())
    expect(idsOf(story, 'of mart')).toEqual([`run:${good.runId}:SUCCEEDED`, ofUnplanned].sort())
    const [failed] = story.rows(sensorHappenings).filter(({ message_id }) => message_id === ofBad)
    expect(failed?.happening).toMatchObject({ type: 'run', state: 'FAILED', asset_selection: ['orders'], labels: {} })
  })
})

describe('what waits for a sensor', () => {
  test('[A59] ends its wait when it is accepted, and a dead letter waits on until a user replays it', () => {
    const story = new Story()
    declare(story, 'watcher', onOrders)
    for (const id of ['r1', 'r2']) report(story, id, 'orders')
    const [first = '', second = ''] = idsOf(story)
    evaluate(story, first, 1)
    expect(idsOf(story)).toEqual([second])
    evaluate(story, second, 1, true)
    expect(idsOf(story), 'the first failure of two').toEqual([second])
    evaluate(story, second, 2, true)
    expect([idsOf(story), story.row(sensorState, 'watcher')]).toMatchObject([[], { happenings_waiting: 1, dead_letters: 1 }])
    story.tell(SensorMessageReplayed, {
      sensor_id: 'watcher',
      message_id: second,
      request_id: 'again',
      requested_by: 'ada',
    })
    expect(idsOf(story)).toEqual([second])
    evaluate(story, second, 3)
    expect(story.row(sensorState, 'watcher')).toMatchObject({ happenings_waiting: 0, dead_letters: 0 })
    expect(story.rows(sensorHappenings)).toEqual([])
  })

  test('[A59] stays through a pause and a change, and is forgotten when the sensor is disabled or removed, or watches other things', () => {
    const story = new Story()
    report(story, 'before', 'orders')
    declare(story, 'watcher', onOrders)
    story.tell(SensorPaused, { sensor_id: 'watcher', request_id: 'p', changed_by: 'ada' })
    report(story, 'paused', 'orders')
    declare(story, 'watcher', { type: 'asset', assets: ['costs'] })
    report(story, 'no longer watched', 'orders')
    expect(idsOf(story)).toEqual(['materialized:report:paused'])
    declare(story, 'watcher', { type: 'asset', assets: ['orders'] }, { enabled: false })
    expect(story.rows(sensorWatches)).toEqual([])
    report(story, 'while disabled', 'orders')
    declare(story, 'watcher', onOrders)
    expect(idsOf(story), 'nothing of the past').toEqual([])
    report(story, 'enabled', 'orders')
    declare(story, 'watcher', { type: 'run', states: ['FAILED'] })
    expect(idsOf(story)).toEqual([])
    declare(story, 'watcher', onOrders)
    report(story, 'last', 'orders')
    expect(story.row(sensorState, 'watcher')?.happenings_waiting).toBe(1)
    story.tell(SensorRemoved, { sensor_id: 'watcher', request_id: 'gone', removed_by: 'ada' })
    expect([story.rows(sensorHappenings), story.rows(sensorWatches)]).toEqual([[], []])
    expect(story.row(sensorState, 'watcher')?.happenings_waiting).toBe(0)
  })

  test('[A58] is nothing of its own runs, also when they are asked for again, while other sensors hear of them', () => {
    const story = new Story()
    const everything: Config = { type: 'asset', assets: ['*'] }
    declare(story, 'watcher', everything)
    declare(story, 'other', everything)
    declare(story, 'runs', { type: 'run', states: ['SUCCEEDED'] })
    report(story, 'r1', 'orders')
    const [message = ''] = idsOf(story)
    const source = { source: 'push', message_id: message, try: 1 } as const
    const runKey = runKeyOfEvaluation('watcher', source, 0)
    const rerunKey = 'rerun:again'
    const eval_id = evaluate(story, message, 1, false, [runKey, rerunKey])
    const asked_by = { sensor_id: 'watcher', eval_id }
    const own = new RunStory(story, runKey.replace('sensor:watcher:', ''), { type: 'sensor', ...asked_by })
    const rerun = new RunStory(story, 'again', { type: 'rerun', run_id: own.runId, request_id: 'x', mode: 'all', asked_by })
    for (const run of [own, rerun]) {
      expect(run.requested()).toEqual({ kind: 'applied' })
      run.planned({ orders: [] })
      run.done('orders')
    }
    expect(idsOf(story)).toEqual([])
    expect(idsOf(story, 'other')).toHaveLength(3)
    expect(idsOf(story, 'runs')).toHaveLength(2)
  })

  test('[A59] is at most 10,000 happenings: then the oldest are dropped, and the state counts them', () => {
    const story = new Story()
    declare(story, 'watcher', onOrders)
    for (let n = 0; n < 10_000; n++) report(story, `r${n}`, 'orders')
    expect(story.row(sensorState, 'watcher')).toMatchObject({ happenings_waiting: 10_000, happenings_dropped: 0 })
    report(story, 'last', 'orders')
    const ids = new Set(idsOf(story))
    expect(story.row(sensorState, 'watcher')).toMatchObject({ happenings_waiting: ids.size, happenings_dropped: 100 })
    expect([ids.size, ids.has('materialized:report:r99'), ids.has('materialized:report:r100')]).toEqual([9_901, false, true])
    expect(ids.has('materialized:report:last')).toBe(true)
  })
})
