export const causeNames = ['never_materialized', 'code_changed', 'upstream_missing', 'upstream_changed', 'freshness'] as const
export type Cause = (typeof causeNames)[number]

/** Why something should be made (again): its causes, something stale that it is made from, or a last attempt that failed. */
export const reasonNames = [...causeNames, 'upstream_stale', 'last_attempt_failed'] as const
export type ReasonToMake = (typeof reasonNames)[number]

export const displayStatuses = ['NEVER_MATERIALIZED', 'MATERIALIZED_BUT_LAST_ATTEMPT_FAILED', 'STALE', 'MATERIALIZED'] as const
export type DisplayStatus = (typeof displayStatuses)[number]
