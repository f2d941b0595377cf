import type { PreviewBody } from '../../../api/run-contract.ts'
import { taskKey } from '../../../domain/assets/graph-partitions.ts'
import type { NeededInputs } from '../../../domain/planning/outside-inputs.ts'
import { ServoError } from '../../../lib/error.ts'
import { shellWord } from '../../../lib/process/shell-word.ts'

/** As many as one reads. */
const SHOWN_KEYS = 3
const SHOWN_ASSETS = 5
/** A longer command is not copied but written anew. */
const MAX_SELECTIONS = 8

/** A run is refused because its inputs were never made. The hint is the command that makes them: in the same run, if one can ask for both. */
export function neverMade(
  missing: NeededInputs,
  toMake: readonly string[],
  { select: selection = [], partitions = [], only = [] }: PreviewBody,
): ServoError {
  const count = [...missing.values()].reduce((sum, keys) => sum + keys.size, 0)
  const isShort = toMake.length <= MAX_SELECTIONS
  // What was never made is stale and missing, but nobody has tried it.
  const isTogether = isShort && selection.length > 0 && !only.includes('failed')
  const first = isShort ? toMake : [...missing.keys()].map((key) => `+key:"${key}"`)
  const flags = isTogether
    ? [...partitions.map((each) => `--partition ${shellWord(each)}`), ...only.map((each) => `--${each}`)]
    : []
  const words = [...first, ...(isTogether ? selection : [])].map(shellWord)
  const command = ['servo run', ...words, ...flags, ...(isShort ? [] : ['--missing'])].join(' ')
  const hint = `Materialize ${count === 1 ? 'it' : 'them'} ${isTogether ? 'in the same run' : 'first'}: ${command}`
  return new ServoError('invalid', 'inputs_missing', linesOf(missing).join('\n  '), { hint })
}

/** A line for each asset with the inputs that it lacks. */
function linesOf(missing: NeededInputs): string[] {
  const lacking = new Map<string, { tasks: Set<string>; inputs: string[] }>()
  for (const [upstream, keys] of missing)
    for (const [key, readers] of keys)
      for (const [asset, task] of readers) {
        const one = lacking.get(asset) ?? { tasks: new Set(), inputs: [] }
        lacking.set(asset, one)
        one.tasks.add(task)
        one.inputs.push(taskKey(upstream, key))
      }
  const lines = [...lacking].slice(0, SHOWN_ASSETS).map(([asset, { tasks, inputs }]) => {
    // Several tasks of an asset lack an input each: none of them lacks all.
    const [who] = tasks.size === 1 ? tasks : [asset]
    const more = inputs.length > SHOWN_KEYS ? ` and ${inputs.length - SHOWN_KEYS} more` : ''
    const shown = `${inputs.slice(0, SHOWN_KEYS).join(', ')}${more}`
    return `${who} needs ${shown}, which ${inputs.length === 1 ? 'was' : 'were'} never materialized`
  })
  const others = lacking.size - lines.length
  return others > 0 ? [...lines, `and so on for ${others} more ${others === 1 ? 'asset' : 'assets'}`] : lines
}
