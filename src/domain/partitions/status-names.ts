export const causeNames = ['never_materialized', 'code_changed', 'upstream_missing', 'upstream_changed', 'freshness'] as const
export type Cause = (typeof causeNames)[number]

export const displayStatuses = ['NEVER_MATERIALIZED', 'MATERIALIZED_BUT_LAST_ATTEMPT_FAILED', 'STALE', 'MATERIALIZED'] as const
export type DisplayStatus = (typeof displayStatuses)[number]
