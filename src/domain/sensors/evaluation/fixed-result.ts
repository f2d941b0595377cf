import { MAX_FIELD } from '../../../contract/evaluation.ts'
import type { SensorRow } from '../sensor-definitions.table.ts'
import type { EvaluationResult } from './evaluation-events.ts'

/** What a sensor without code makes of a message: a run of its selection, of the partition and under the key that the message names. */
export function fixedResult({ config, asset_selection }: Readonly<SensorRow>, message: unknown): EvaluationResult {
  const fixed = 'fixed' in config ? config.fixed : null
  const named: { partition?: string; key?: string } = {}
  for (const part of ['partition', 'key'] as const) {
    const pointer = fixed?.[part]
    if (pointer == null) continue
    const value = valueAt(message, pointer)
    if (typeof value !== 'string' && typeof value !== 'number') {
      const found = value === undefined ? 'nothing' : value === null ? 'null' : `a value of type ${typeof value}`
      return {
        error: `the ${part} of the run must be a string or a number at ${pointer || 'the root'} of the message, not ${found}.`,
        unfit_field: fieldAt(pointer),
      }
    }
    named[part] = String(value)
  }
  const { partition, key = null } = named
  return { runs: [{ asset_selection, partition_selection: partition === undefined ? null : [partition], key }] }
}

/** `order.id` for /order/id, as fields of schemas are named. */
const fieldAt = (pointer: string): string => stepsOf(pointer).join('.').slice(0, MAX_FIELD)

const stepsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

/** The value that a JSON pointer (RFC 6901) names, undefined if there is none. */
function valueAt(value: unknown, pointer: string): unknown {
  let current = value
  for (const name of stepsOf(pointer)) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name)) return undefined
    current = Object.getOwnPropertyDescriptor(current, name)?.value
  }
  return current
}
