/** The subjects that parked facts wait for. Each has one spelling, so that the fold that changes the thing wakes the right facts. */
export const runSubject = (runId: string): string => `run:${runId}`
export const taskSubject = (runId: string, taskKey: string): string => `task:${runId}:${taskKey}`
export const tickSubject = (tickId: string): string => `tick:${tickId}`
export const evalSubject = (evalId: string): string => `eval:${evalId}`
export const sensorSubject = (sensorId: string): string => `sensor:${sensorId}`
export const backfillSubject = (backfillId: string): string => `backfill:${backfillId}`
export const alertTrySubject = (alertId: string): string => `alert:${alertId}`
export const removalSubject = (removalId: string): string => `removal:${removalId}`
