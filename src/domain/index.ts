import type { Registry } from '../model/event.ts'
import { assetDefinitions } from './assets/asset-definitions.table.ts'
import { AssetsDefined } from './assets/assets-defined.event.ts'
import { pools } from './assets/pools.table.ts'
import { AutomationPaused } from './automation/automation-paused.event.ts'
import { AutomationResumed } from './automation/automation-resumed.event.ts'
import { automationState } from './automation/automation-state.table.ts'
import { BackfillCancelRequested } from './backfills/backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from './backfills/backfill-chunk-planned.event.ts'
import { backfillChunks } from './backfills/backfill-chunks.table.ts'
import { BackfillCreated } from './backfills/backfill-created.event.ts'
import { BackfillStateChanged } from './backfills/backfill-state-changed.event.ts'
import { backfills } from './backfills/backfills.table.ts'
import { DispatchEnqueued } from './dispatch/dispatch-enqueued.event.ts'
import { dispatchOutbox } from './dispatch/dispatch-outbox.table.ts'
import { DispatchRepeated } from './dispatch/dispatch-repeated.event.ts'
import { DispatchRequested } from './dispatch/dispatch-requested.event.ts'
import { dynamicPartitions } from './partitions/dynamic-partitions.table.ts'
import { MaterializationReported } from './partitions/materialization-reported.event.ts'
import { PartitionKeysAdded } from './partitions/partition-keys-added.event.ts'
import { PartitionKeysRemoved } from './partitions/partition-keys-removed.event.ts'
import { partitionStatus } from './partitions/partition-status.table.ts'
import { PartitionWiped } from './partitions/partition-wiped.event.ts'
import { RunCancelRequested } from './runs/run-cancel-requested.event.ts'
import { runKeyConflicts } from './runs/run-key-conflicts.table.ts'
import { runKeyIndex } from './runs/run-key-index.table.ts'
import { RunRequested } from './runs/run-requested.event.ts'
import { runs } from './runs/runs.table.ts'
import { ScheduleCaughtUp } from './schedules/schedule-caught-up.event.ts'
import { ScheduleDefined } from './schedules/schedule-defined.event.ts'
import { scheduleDefinitions } from './schedules/schedule-definitions.table.ts'
import { SchedulePaused } from './schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from './schedules/schedule-removed.event.ts'
import { ScheduleResumed } from './schedules/schedule-resumed.event.ts'
import { scheduleState } from './schedules/schedule-state.table.ts'
import { ScheduleTicked } from './schedules/schedule-ticked.event.ts'
import { scheduleTicks } from './schedules/schedule-ticks.table.ts'
import { ScheduleTicksSkipped } from './schedules/schedule-ticks-skipped.event.ts'
import { SensorCursorReset } from './sensors/sensor-cursor-reset.event.ts'
import { SensorDefined } from './sensors/sensor-defined.event.ts'
import { sensorDefinitions } from './sensors/sensor-definitions.table.ts'
import { sensorEvals } from './sensors/sensor-evals.table.ts'
import { SensorEvaluated } from './sensors/sensor-evaluated.event.ts'
import { SensorMessageConflicted } from './sensors/sensor-message-conflicted.event.ts'
import { sensorMessageConflicts } from './sensors/sensor-message-conflicts.table.ts'
import { SensorMessageReplayed } from './sensors/sensor-message-replayed.event.ts'
import { sensorMessages } from './sensors/sensor-messages.table.ts'
import { SensorPaused } from './sensors/sensor-paused.event.ts'
import { SensorRemoved } from './sensors/sensor-removed.event.ts'
import { SensorResumed } from './sensors/sensor-resumed.event.ts'
import { sensorState } from './sensors/sensor-state.table.ts'
import { SensorsPolled } from './sensors/sensors-polled.event.ts'
import { depSatisfaction } from './tasks/dep-satisfaction.table.ts'
import { PlanCreated } from './tasks/plan-created.event.ts'
import { taskAttempts } from './tasks/task-attempts.table.ts'
import { TaskFinished } from './tasks/task-finished.event.ts'
import { TaskHeartbeat } from './tasks/task-heartbeat.event.ts'
import { TaskStarted } from './tasks/task-started.event.ts'
import { tasks } from './tasks/tasks.table.ts'
import { TimerFired } from './timers/timer-fired.event.ts'
import { TimerRequested } from './timers/timer-requested.event.ts'
import { timers } from './timers/timers.table.ts'

/** The orchestration domain: every table and every event, one line each. */
export const orchestration: Registry = {
  tables: [
    runs,
    tasks,
    taskAttempts,
    depSatisfaction,
    dispatchOutbox,
    timers,
    scheduleDefinitions,
    scheduleState,
    scheduleTicks,
    automationState,
    sensorDefinitions,
    sensorState,
    sensorEvals,
    sensorMessages,
    sensorMessageConflicts,
    backfills,
    backfillChunks,
    partitionStatus,
    runKeyIndex,
    runKeyConflicts,
    assetDefinitions,
    pools,
    dynamicPartitions,
  ],
  events: [
    RunRequested,
    RunCancelRequested,
    PlanCreated,
    DispatchRequested,
    DispatchEnqueued,
    DispatchRepeated,
    TaskStarted,
    TaskHeartbeat,
    TaskFinished,
    TimerRequested,
    TimerFired,
    ScheduleDefined,
    ScheduleRemoved,
    SchedulePaused,
    ScheduleResumed,
    ScheduleTicked,
    ScheduleTicksSkipped,
    ScheduleCaughtUp,
    AutomationPaused,
    AutomationResumed,
    SensorDefined,
    SensorRemoved,
    SensorPaused,
    SensorResumed,
    SensorCursorReset,
    SensorEvaluated,
    SensorsPolled,
    SensorMessageReplayed,
    SensorMessageConflicted,
    BackfillCreated,
    BackfillChunkPlanned,
    BackfillStateChanged,
    BackfillCancelRequested,
    MaterializationReported,
    PartitionWiped,
    PartitionKeysAdded,
    PartitionKeysRemoved,
    AssetsDefined,
  ],
}
