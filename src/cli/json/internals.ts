/** Columns that only Servo itself can use, as are ids of events: versions of rows, fingerprints, parts of plans. `servo query` has them. */
const INTERNAL: ReadonlySet<string> = new Set([
  'accepted_eval_id',
  'asked_ahead',
  'attempt_id',
  'clock_turn',
  'clock_turns',
  'correlation_id',
  'decided_until',
  'definition_hash',
  'definition_version',
  'deps_satisfied_count',
  'deps_total',
  'graph_version',
  'plan_id',
  'plan_parts',
  'plan_parts_missing',
  'plan_parts_seen',
  'request_fingerprint',
  'revision',
  'row_version',
  'run_fingerprints',
  'secret_id',
  'spec',
  'tenant_id',
  'workspace_id',
])

/** What users and their code wrote is printed as it is, whatever they called it. */
const OF_USERS: ReadonlySet<string> = new Set([
  'attributes',
  'checks',
  'config',
  'error_detail',
  'facts',
  'fields',
  'labels',
  'metadata',
  'metrics',
  'output',
  'partition_values',
  'policies',
  'tags',
])

/** A value without what only Servo itself can use. */
export function withoutInternals(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutInternals)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !INTERNAL.has(name) && !name.endsWith('event_id'))
      .map(([name, member]) => [name, OF_USERS.has(name) ? member : withoutInternals(member)]),
  )
}
