import { parseCron } from '../../cron/parse-cron.ts'
import { checkZoneName } from '../../cron/zone-name.ts'
import { isServoError } from '../../lib/error.ts'
import { invalid, show } from '../invalid.ts'

/** A condition as it is recorded. */
export type ConditionData =
  | { readonly type: 'eager' | 'missing' | 'upstream_updated' | 'code_changed' | 'in_progress' }
  | { readonly type: 'on_cron'; readonly cron: string; readonly timezone: string }
  | { readonly type: 'and' | 'or'; readonly conditions: readonly ConditionData[] }
  | { readonly type: 'not'; readonly condition: ConditionData }

/** A condition under which Servo materializes an asset by itself. */
export interface Condition {
  readonly data: ConditionData
  and(other: Condition): Condition
  or(other: Condition): Condition
  not(): Condition
}

function condition(data: ConditionData): Condition {
  const join = (type: 'and' | 'or', other: Condition): Condition => {
    if (!isCondition(other))
      throw invalid('bad_condition', `${show(other)} is not a condition`, `Write when.eager().${type}(when.codeChanged()).`)
    return condition({ type, conditions: [data, other.data] })
  }
  return {
    data,
    and: (other) => join('and', other),
    or: (other) => join('or', other),
    not: () => condition({ type: 'not', condition: data }),
  }
}

export function isCondition(value: unknown): value is Condition {
  return typeof value === 'object' && value !== null && 'data' in value && 'and' in value && 'or' in value
}

export const when = {
  /** Whenever an upstream asset is newer, or the asset is missing, unless an upstream asset is missing or in progress. */
  eager: (): Condition => condition({ type: 'eager' }),
  /** At each tick of a cron expression, once every upstream asset was materialized since that tick. */
  onCron(cron: string, timezone = 'UTC'): Condition {
    return condition({ type: 'on_cron', ...checkedCron(cron, timezone, 'when.onCron') })
  },
  missing: (): Condition => condition({ type: 'missing' }),
  upstreamUpdated: (): Condition => condition({ type: 'upstream_updated' }),
  codeChanged: (): Condition => condition({ type: 'code_changed' }),
  inProgress: (): Condition => condition({ type: 'in_progress' }),
}

/** An expression and a zone that can be read, so that a mistake shows when the project is loaded. */
export function checkedCron(cron: unknown, timezone: unknown, caller: string): { cron: string; timezone: string } {
  if (typeof cron !== 'string')
    throw invalid('bad_cron', `${caller} needs a cron expression, not ${show(cron)}`, "Write '0 5 * * *' for 05:00 every day.")
  checkZoneName(timezone)
  try {
    return { cron: parseCron(cron).text, timezone }
  } catch (error) {
    if (!isServoError(error)) throw error
    throw invalid('bad_cron', `${caller}: ${error.message}`, error.hint ?? "Write '0 5 * * *' for 05:00 every day.")
  }
}
