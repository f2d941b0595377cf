import { SECOND_MS } from '../../../lib/time.ts'
import { idPart } from '../../sensors/evaluation-ids.ts'

const epoch = (ms: number): number => Math.floor(ms / SECOND_MS)

/** A tick of the clock: the same in every process that finds it due. */
export const tickId = (scheduleId: string, ms: number): string => `${scheduleId}:${epoch(ms)}`
/** A tick that a person or program asked for. */
export const manualTickId = (scheduleId: string, requestId: string): string => `${scheduleId}:manual:${idPart(requestId)}`
export const skippedTicksId = (scheduleId: string, firstMs: number, lastMs: number): string =>
  firstMs === lastMs ? tickId(scheduleId, firstMs) : `${scheduleId}:${epoch(firstMs)}..${epoch(lastMs)}`

/** The run key of a tick. Ids of ticks begin with that of their schedule, so no other run key is the same. */
export const runKeyOfTick = (tick: string): string => `sched:${tick}`
