import { type Cadence, type CadenceDefinition, cadenceOf } from '../../../cron/cadence.ts'
import type { ScheduleRow } from '../schedule-definitions.table.ts'

/** The cadences of rows, each as of a version of its row: a thousand schedules are asked at once when an hour is full. */
const cadences = new WeakMap<Readonly<ScheduleRow>, { readonly version: string; readonly cadence: Cadence | undefined }>()

/** The cadence of a definition, if it can be read: one of another version may name what this one does not know. */
export function cadenceIfAny(definition: Readonly<ScheduleRow>): Cadence | undefined {
  const version = definition.row_version
  let known = cadences.get(definition)
  if (known?.version !== version) {
    known = { version, cadence: readableCadence(definition) }
    cadences.set(definition, known)
  }
  return known.cadence
}

/** The same for a cron that is not that of a row. */
export function readableCadence(definition: CadenceDefinition): Cadence | undefined {
  try {
    return cadenceOf(definition)
  } catch {
    return undefined
  }
}
