/** How schedules are, as lists show them. Without schemas, because commands load this. */
export const scheduleStatuses = ['active', 'paused', 'disabled', 'ended', 'removed'] as const

/** How sensors are. */
export const sensorStatuses = ['active', 'error', 'paused', 'disabled', 'removed'] as const

/** What became of a tick. In the order of the alphabet, a later one stands: what was skipped or failed may still be triggered, once. */
export const tickStatuses = ['failed', 'skipped', 'triggered'] as const

/** What became of an evaluation. */
export const evalStatuses = ['triggered', 'no_new_data', 'error', 'skipped_stale_cursor', 'skipped_duplicate'] as const
