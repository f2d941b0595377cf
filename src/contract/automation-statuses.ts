/** How schedules are, as lists show them. Without schemas, because commands load this. */
export const scheduleStatuses = ['active', 'paused', 'disabled', 'ended', 'removed'] as const

/** How sensors are. */
export const sensorStatuses = ['active', 'error', 'paused', 'disabled', 'removed'] as const
