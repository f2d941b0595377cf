import { taskKey } from '../../../domain/assets/graph-partitions.ts'
import type { WorkSelection } from '../../../domain/planning/plan-choice.ts'
import { ServoError } from '../../../lib/error.ts'

/** As many as one reads. */
const SHOWN_KEYS = 3
/** A longer command is not copied but written anew. */
const MAX_SELECTIONS = 8

/** A run is refused because its inputs were never made. The hint is the command that makes them in the same run. */
export function neverMade(
  missing: ReadonlyMap<string, ReadonlyMap<string, string>>,
  toMake: readonly string[],
  { asset_selection, partition_selection }: WorkSelection,
): ServoError {
  const all = [...missing].flatMap(([upstream, keys]) => [...keys].map(([key, by]) => ({ what: taskKey(upstream, key), by })))
  const [{ by } = { by: '' }] = all
  const shown = all.slice(0, SHOWN_KEYS).map(({ what }) => what)
  const more = all.length > shown.length ? ` and ${all.length - shown.length} more` : ''
  const message = `${by} needs ${shown.join(', ')}${more}, which ${all.length === 1 ? 'was' : 'were'} never made`
  const partitions = (partition_selection ?? []).map((partition) => ` --partition ${quoted(partition)}`).join('')
  const command =
    toMake.length <= MAX_SELECTIONS
      ? `servo run ${[...toMake, ...asset_selection].map(quoted).join(' ')}${partitions}`
      : `servo run ${[...missing.keys()].map((key) => quoted(`+key:"${key}"`)).join(' ')} --missing`
  const them = all.length === 1 ? 'it' : 'them'
  const hint = `Make ${them} ${toMake.length <= MAX_SELECTIONS ? 'in the same run' : 'first'}: ${command}`
  return new ServoError('invalid', 'inputs_missing', message, { hint })
}

/** As a shell takes it. */
const quoted = (text: string): string => (/^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
