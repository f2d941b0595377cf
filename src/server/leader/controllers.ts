import { alertController } from '../../domain/alerts/alert.controller.ts'
import type { AlertRule } from '../../domain/alerts/alert-rule.ts'
import type { RequestRun } from '../../domain/automation/request-run.ts'
import { type BackfillControllerOptions, backfillController } from '../../domain/backfills/backfill.controller.ts'
import { dispatchController } from '../../domain/dispatch/dispatch.controller.ts'
import type { Limits } from '../../domain/dispatch/room.ts'
import { stuckDispatchController } from '../../domain/dispatch/stuck.controller.ts'
import { cancelController } from '../../domain/runs/cancel.controller.ts'
import { planController } from '../../domain/runs/plan.controller.ts'
import type { Conditions } from '../../domain/schedules/conditions.ts'
import { scheduleController } from '../../domain/schedules/schedule.controller.ts'
import { deadlineController, onDeadline } from '../../domain/tasks/deadline.controller.ts'
import { heartbeatController, onHeartbeatCheck } from '../../domain/tasks/heartbeat.controller.ts'
import { lostWorkersController } from '../../domain/tasks/lost-workers.controller.ts'
import { alarmController } from '../../domain/timers/alarm.controller.ts'
import { retryController } from '../../domain/timers/retry.controller.ts'
import type { Controller } from '../../model/controller.ts'

export interface Deciding {
  /** Names this process, whose workers are not lost. */
  readonly instance: string
  readonly limits: () => Limits
  readonly cancelGraceMs: () => number
  readonly stuckDispatchMs: () => number
  /** When this process last received a sign of a remote attempt, or began to listen. */
  readonly lastSign: (attemptId: string) => number
  /** True if this process begins the tasks of this run. */
  readonly carries: (runId: string) => boolean
  readonly automation?: Automation | undefined
  /** The alerts of the project. Absent in a process that does only what it is asked. */
  readonly alerts?: (() => readonly AlertRule[]) | undefined
  /** What backfills need to go on. Absent in a process that does only what it is asked. */
  readonly backfills?: BackfillControllerOptions | undefined
}

/** What schedules need to act. Absent in a process that does only what it is asked. */
export interface Automation {
  readonly requestRun: RequestRun
  /** False until the project is loaded: what it declares counts from then on. */
  readonly mayDecide: () => boolean
  /** Has conditions of schedules evaluated. Without it, ticks that depend on one fail. */
  readonly conditions?: Conditions | undefined
}

/** All controllers, in the order in which the loop asks them. */
export function controllersOf(deciding: Deciding): readonly Controller[] {
  const { instance, limits, cancelGraceMs, stuckDispatchMs, lastSign, carries, automation, backfills, alerts } = deciding
  return [
    ...(automation === undefined ? [] : [scheduleController(automation)]),
    ...(backfills === undefined ? [] : [backfillController(backfills)]),
    planController(),
    retryController(),
    alarmController({ HEARTBEAT_CHECK: onHeartbeatCheck(lastSign), SLA_CHECK: onDeadline }),
    lostWorkersController(instance),
    heartbeatController(),
    deadlineController(),
    cancelController(cancelGraceMs),
    dispatchController(limits, carries),
    stuckDispatchController(stuckDispatchMs),
    ...(alerts === undefined ? [] : [alertController(alerts)]),
  ]
}
