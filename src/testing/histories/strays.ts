import { AlertRaised } from '../../domain/alerts/alert-raised.event.ts'
import { type AlertSubject, alertIdOf } from '../../domain/alerts/alert-subject.ts'
import { AlertTried } from '../../domain/alerts/alert-tried.event.ts'
import { AssetFreshnessNoticed } from '../../domain/alerts/asset-freshness-noticed.event.ts'
import { AssetsDefined } from '../../domain/assets/assets-defined.event.ts'
import { BackfillCancelRequested } from '../../domain/backfills/backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from '../../domain/backfills/backfill-chunk-planned.event.ts'
import { BackfillSettingsChanged } from '../../domain/backfills/backfill-settings-changed.event.ts'
import { BackfillStateChanged } from '../../domain/backfills/backfill-state-changed.event.ts'
import { DispatchEnqueued } from '../../domain/dispatch/dispatch-enqueued.event.ts'
import { attemptId } from '../../domain/dispatch/dispatch-ids.ts'
import { DispatchRequested } from '../../domain/dispatch/dispatch-requested.event.ts'
import { MaterializationReported } from '../../domain/partitions/materialization-reported.event.ts'
import { PartitionKeysAdded } from '../../domain/partitions/partition-keys-added.event.ts'
import { PartitionKeysRemoved } from '../../domain/partitions/partition-keys-removed.event.ts'
import { PartitionWiped } from '../../domain/partitions/partition-wiped.event.ts'
import { DataRemoved, type RemovedValue } from '../../domain/retention/data-removed.event.ts'
import { FilesDeleted } from '../../domain/retention/files-deleted.event.ts'
import { RetentionAdvanced } from '../../domain/retention/retention-advanced.event.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { evalIdOf, runKeyOfEvaluation } from '../../domain/sensors/evaluation-ids.ts'
import { SensorEvaluated } from '../../domain/sensors/sensor-evaluated.event.ts'
import { PlanCreated } from '../../domain/tasks/plan-created.event.ts'
import { TaskFinished } from '../../domain/tasks/task-finished.event.ts'
import { TaskHeartbeat } from '../../domain/tasks/task-heartbeat.event.ts'
import { TaskStarted } from '../../domain/tasks/task-started.event.ts'
import { TimerFired } from '../../domain/timers/timer-fired.event.ts'
import { TimerRequested } from '../../domain/timers/timer-requested.event.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { toIso } from '../../lib/time.ts'
import { ulidFloor } from '../../lib/ulid.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { StrayPlan } from './plan.ts'
import { SimulatedRun, type SimulatedTask } from './runs.ts'
import { tellWatchers } from './watchers.ts'
import { type Actor, pause, type World } from './world.ts'

/** An event of a moment in the past. */
const someEvent = (target: number): string => ulidFloor(1_700_000_000_000 + target)

function removedValue(partition_key: string, target: number, variant: number): RemovedValue {
  return {
    event_id: someEvent(target),
    partition_keys: [partition_key],
    materialization_id: `m${target}`,
    materialized_at: toIso(1_700_000_000_000 + target),
    path: variant % 3 === 0 ? null : `data/asset${target % 4}/${partition_key}/m${target}.json`,
    bytes: variant,
    ...(variant % 2 === 0 && { sha256: 'a'.repeat(64) }),
  }
}

/** Larger than any number of attempts allowed. */
const NEVER = 9
const nobody = 'run_aaaaaaaaaaaaaaaaaaaaaaaaaa'

/** A fact that belongs to nothing that goes on, or comes from a writer that is mistaken. */
export function* stray(world: World, index: number, plan: StrayPlan): Actor {
  yield* pause(plan.wait)
  const segment = straySegment(world, index, plan)
  if (segment !== undefined) yield segment
  if (plan.kind === 'alert' && segment !== undefined) yield* alertTries(world, segment, plan)
  if (plan.kind !== 'removal') return
  yield* pause(plan.variant)
  yield world.write(FilesDeleted, { removal_id: `removal-${index}` })
}

function straySegment(world: World, index: number, { kind, target, variant }: StrayPlan): Envelope[] | undefined {
  const run = world.runs[target % Math.max(1, world.runs.length)]
  const task = run === undefined ? undefined : [...run.tasks.values()][variant % Math.max(1, run.tasks.size)]
  const partition_key = `2025-01-${10 + (variant % 3)}`
  switch (kind) {
    case 'unknown type':
      return [{ ...cancelNobody(world), event_type: 'MoonRose' }]
    case 'unknown version':
      return [{ ...cancelNobody(world), event_version: 99 }]
    case 'invalid payload':
      return world.write(TaskFinished, { run_id: run?.runId ?? nobody, task_key: 't0', attempt: -1 })
    case 'materialization': {
      const moment = toIso(world.now + (variant - 3) * 1_000)
      const news = { id: `materialized:report:report-${index}`, type: 'asset', what: 'materialized' } as const
      tellWatchers(world.watchers, { ...news, assets: [`asset${target % 4}`] })
      return world.write(MaterializationReported, {
        report_id: `report-${index}`,
        asset_key: `asset${target % 4}`,
        partition_key,
        materialized_at: moment,
        reported_by: 'dbt',
        ...(variant % 2 === 0 && { data_version: `d${variant % 3}` }),
      })
    }
    case 'wipe':
      return world.write(PartitionWiped, {
        request_id: `wipe-${index}`,
        asset_key: `asset${target % 4}`,
        partition_key,
        wiped_by: 'ada',
        ...(variant % 2 === 0 && { reason: `because of ${variant}` }),
      })
    case 'partition keys':
      return world.write(variant % 2 === 0 ? PartitionKeysAdded : PartitionKeysRemoved, {
        request_id: `keys-${index}`,
        set_name: 'customers',
        keys: variant % 3 === 0 ? ['acme', 'hooli'] : ['initech'],
        changed_by: 'ada',
      })
    case 'removal':
      return world.write(DataRemoved, {
        removal_id: `removal-${index}`,
        asset_key: `asset${target % 4}`,
        reason: variant % 2 === 0 ? 'expired' : 'purged',
        removed_by: 'ada',
        values: [removedValue(partition_key, target, variant)],
      })
    case 'retention':
      return world.write(RetentionAdvanced, {
        asset_key: `asset${target % 4}`,
        versions: 1 + (variant % 2),
        days: variant,
        passed_event_id: someEvent(target),
        turn: 1 + (variant % 3),
      })
    case 'assets':
      // Two projects are loaded at the same moment, and differ.
      return [...assetsDefined(world, index, variant), ...assetsDefined(world, index + 100, variant + 1)]
    case 'unknown run':
      return world.write(
        ...factAbout(
          world,
          { run_id: nobody, task_key: 't0', attempt: 1, attempt_id: attemptId(nobody, 't0', 1) },
          variant,
          true,
        ),
      )
    case 'unknown task': {
      const run_id = run?.runId ?? nobody
      return world.write(
        ...factAbout(world, { run_id, task_key: 'nothing', attempt: 1, attempt_id: attemptId(run_id, 'nothing', 1) }, variant),
      )
    }
    case 'attempt that never is':
      return run && task && world.write(...factAbout(world, run.attemptFact(task, NEVER), variant))
    case 'forged attempt id':
      // The first of these is a dispatch, which would make the forged id the true one.
      return (
        run && task && world.write(...factAbout(world, { ...run.attemptFact(task), attempt_id: 'a_forged' }, (variant + 4) % 5))
      )
    case 'early dispatch':
      return run && task && earlyDispatch(world, run, task)
    case 'unrequested alarm':
      return run && task && alarm(world, run, task, variant)
    case 'future poll': {
      const sensor_id = `sensor-${target % 2}`
      const source = { source: 'poll', state_version: 1_000 } as const
      const eval_id = evalIdOf(sensor_id, source, `future-${index}`)
      const asker = { type: 'sensor', sensor_id, eval_id } as const
      const asked = new SimulatedRun(world, emptyRun, runKeyOfEvaluation(sensor_id, source, index), asker)
      world.refused.add(asked.runKey)
      const evaluated = world.write(SensorEvaluated, {
        sensor_id,
        trigger_source: source,
        begun: `future-${index}`,
        status: 'triggered',
        run_keys: [asked.runKey],
      })
      return [...evaluated, asked.request(world.writer())]
    }
    case 'stale backfill change': {
      const backfill = world.backfills[target % Math.max(1, world.backfills.length)]
      if (backfill === undefined) return undefined
      // There is no way back from an end.
      const impossible = { from_state: 'SUCCEEDED', to_state: 'RUNNING', state_version: backfill.version + 1 }
      if (variant % 2 === 0) return world.write(BackfillStateChanged, { backfill_id: backfill.id, ...impossible })
      // From the version before: another change was faster.
      const change = { backfill_id: backfill.id, from_state: 'RUNNING', to_state: 'PAUSED', state_version: backfill.version }
      return backfill.version < 2 ? undefined : world.write(BackfillStateChanged, change)
    }
    case 'backfill settings': {
      const backfill = world.backfills[target % Math.max(1, world.backfills.length)]
      const settings = { max_concurrent_runs: 1 + (variant % 3), priority: variant, changed_by: 'ada' }
      const change = { settings_version: 2 + (variant % 2), request_id: `settings-${index}`, ...settings }
      return backfill && world.write(BackfillSettingsChanged, { backfill_id: backfill.id, ...change })
    }
    case 'impossible chunk': {
      const backfill = world.backfills[target % Math.max(1, world.backfills.length)]
      return backfill && world.write(BackfillChunkPlanned, chunk(backfill.id, 99))
    }
    case 'alert':
      return world.write(AlertRaised, { ...raised(world, run?.runId, index, { target, variant }), title: 'something happened' })
    case 'freshness':
      return world.write(AssetFreshnessNoticed, {
        asset_key: `asset${target % 4}`,
        as_of: toIso(world.now + variant * 1_000),
        stale: variant % 2 === 0,
        stale_since: toIso(1_700_000_000_000 + target),
        partitions: variant,
      })
    case 'unknown backfill':
      if (variant % 3 === 0) return world.write(BackfillCancelRequested, { backfill_id: 'nothing', requested_by: 'ada' })
      if (variant % 3 === 1) return world.write(BackfillChunkPlanned, chunk('nothing', 0))
      return world.write(BackfillStateChanged, {
        backfill_id: 'nothing',
        from_state: 'PENDING',
        to_state: 'RUNNING',
        state_version: 2,
      })
  }
}

/** An alert about something that goes on, or about something that never was. */
function raised(
  world: World,
  runId: string | undefined,
  index: number,
  { target, variant }: Pick<StrayPlan, 'target' | 'variant'>,
) {
  const moment = toIso(1_700_000_000_000 + target)
  const backfill = world.backfills[target % Math.max(1, world.backfills.length)]
  const subjects = [
    { kind: 'run.failed', subject: { type: 'run', run_id: variant > 5 ? nobody : (runId ?? nobody) } },
    { kind: 'schedule.late', subject: { type: 'schedule', schedule_id: `schedule-${target % 2}`, tick: moment } },
    { kind: 'sensor.failing', subject: { type: 'sensor', sensor_id: `sensor-${target % 2}`, failing_since: moment } },
    { kind: 'asset.stale', subject: { type: 'asset', asset_key: `asset${target % 4}`, stale_since: moment } },
    { kind: 'backfill.failed', subject: { type: 'backfill', backfill_id: backfill?.id ?? 'nothing' } },
    { kind: 'test', subject: { type: 'test', request_id: `test-${index}` } },
  ] as const
  return { target: `target-${target % 2}`, ...itemAt(subjects, variant % subjects.length) }
}

/** It is sent until it arrives, or is given up. */
function* alertTries(world: World, segment: readonly Envelope[], { variant }: StrayPlan): Actor {
  const { payload } = itemAt(segment, 0)
  const { target, kind, subject } = payload as { target: string; kind: string; subject: AlertSubject }
  const alert_id = alertIdOf(target, kind, subject)
  const last = 1 + (variant % 3)
  for (let tried = 1; tried <= last; tried++) {
    yield* pause(variant)
    const again = {
      status: 'pending',
      error: 'it answered 500',
      http_status: 500,
      next_try_at: toIso(world.now + 5_000),
    } as const
    const end = { status: variant % 2 === 0 ? 'delivered' : 'failed', http_status: 200 } as const
    yield world.write(AlertTried, { alert_id, try: tried, ...(tried < last ? again : end) })
  }
}

function assetsDefined(world: World, index: number, variant: number): Envelope[] {
  const removed = variant % 4 === 3
  const assets = [0, 1].map((n) => ({
    asset_key: `asset${(variant + n) % 4}`,
    asset_id: `id-${(variant + n) % 4}`,
    definition: { index },
    removed,
  }))
  const pools = variant % 2 === 0 ? null : [{ pool: 'db', slots: removed ? null : index + 1 }]
  return world.write(AssetsDefined, { graph_version: `graph-${index}`, assets, pools })
}

const cancelNobody = (world: World): Envelope =>
  world.writer().write(RunCancelRequested, { run_id: nobody, requested_by: 'ada' })

const emptyRun = {
  tasks: [],
  parts: 1,
  spread: false,
  flaw: 'none',
  cancelAfter: null,
  deadline: false,
  askedAgain: [],
  plannedTwice: false,
} as const

const chunk = (backfill_id: string, chunk_index: number) => ({
  backfill_id,
  chunk_index,
  state_version: 2,
  run: { run_key: `backfill:${backfill_id}:chunk:${chunk_index}`, run_id: nobody, request_fingerprint: 'f' },
})

type StrayFact = ReturnType<SimulatedRun['attemptFact']>

function factAbout(world: World, fact: StrayFact, variant: number, isRunUnknown = false): Parameters<World['write']> {
  const { attempt_id, ...place } = fact
  const moment = toIso(world.now)
  const authenticated: Parameters<World['write']>[] = [
    [TaskStarted, { ...fact, worker_id: 'stranger', started_at: moment }],
    [TaskFinished, { ...fact, outcome: 'SUCCEEDED', completed_at: moment, materialization_id: 'stranger' }],
    [TaskFinished, { ...fact, outcome: 'FAILED', retryable: false, completed_at: moment }],
    [TaskHeartbeat, { ...fact, heartbeat_at: moment }],
  ]
  const others: Parameters<World['write']>[] = [
    [DispatchRequested, fact],
    isRunUnknown
      ? [RunCancelRequested, { run_id: fact.run_id, requested_by: 'ada' }]
      : [DispatchEnqueued, { ...place, status: 'CREATED' }],
    [TimerRequested, { ...place, timer_type: 'HEARTBEAT_CHECK', fire_at: moment }],
    isRunUnknown
      ? [PlanCreated, { run_id: fact.run_id, plan_id: 'p', part: 0, parts: 1, tasks: [] }]
      : [TimerFired, { ...place, timer_type: 'RETRY', fire_at: moment }],
  ]
  return itemAt([...authenticated, ...others], variant % 8)
}

/** A controller with an old view asks for a dispatch before its time; it takes effect when the task is ready. */
function earlyDispatch(world: World, run: SimulatedRun, task: SimulatedTask): Envelope[] {
  task.asked.add(task.attempt)
  if (task.state === 'READY') run.dispatched(task)
  return world.write(DispatchRequested, { ...run.attemptFact(task), worker_queue: 'express' })
}

/** An alarm that was not requested, or fires too early. It may go off, but wakes no task that does not wait for it. */
function alarm(world: World, run: SimulatedRun, task: SimulatedTask, variant: number): Envelope[] {
  const { attempt_id: _, ...place } = run.attemptFact(task)
  const definition = variant % 4 < 2 ? TimerFired : TimerRequested
  const timer_type = variant % 2 === 0 ? 'HEARTBEAT_CHECK' : 'SLA_CHECK'
  return world.write(definition, { ...place, timer_type, fire_at: toIso(world.now + 600_000) })
}
