import type { PreviewBody } from '../../../api/run-contract.ts'
import { taskKey } from '../../../domain/assets/graph-partitions.ts'
import { ServoError } from '../../../lib/error.ts'

/** As many as one reads. */
const SHOWN_KEYS = 3
/** A longer command is not copied but written anew. */
const MAX_SELECTIONS = 8

/** A run is refused because its inputs were never made. The hint is the command that makes them: in the same run, if one can ask for both. */
export function neverMade(
  missing: ReadonlyMap<string, ReadonlyMap<string, string>>,
  toMake: readonly string[],
  { selection = [], partitions = [], only = [] }: PreviewBody,
): ServoError {
  const all = [...missing].flatMap(([upstream, keys]) => [...keys].map(([key, by]) => ({ what: taskKey(upstream, key), by })))
  const [{ by } = { by: '' }] = all
  const shown = all.slice(0, SHOWN_KEYS).map(({ what }) => what)
  const more = all.length > shown.length ? ` and ${all.length - shown.length} more` : ''
  const message = `${by} needs ${shown.join(', ')}${more}, which ${all.length === 1 ? 'was' : 'were'} never materialized`
  const isShort = toMake.length <= MAX_SELECTIONS
  // What was never made is stale and missing, but nobody has tried it.
  const isTogether = isShort && selection.length > 0 && !only.includes('failed')
  const first = isShort ? toMake : [...missing.keys()].map((key) => `+key:"${key}"`)
  const flags = isTogether
    ? [...partitions.map((each) => `--partition ${quoted(each)}`), ...only.map((each) => `--${each}`)]
    : []
  const words = [...first, ...(isTogether ? selection : [])].map(quoted)
  const command = ['servo run', ...words, ...flags, ...(isShort ? [] : ['--missing'])].join(' ')
  const hint = `Materialize ${all.length === 1 ? 'it' : 'them'} ${isTogether ? 'in the same run' : 'first'}: ${command}`
  return new ServoError('invalid', 'inputs_missing', message, { hint })
}

/** As a shell takes it. */
const quoted = (text: string): string => (/^[\w./:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
