import type { BackfillPreviewBody } from '../../../api/automation/backfill-contract.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { badFlag } from '../../flags.ts'

export interface PartitionFlags {
  start?: string
  end?: string
  partitions?: string[]
  filter?: string[]
  only?: string
  all?: boolean
  skipExisting?: boolean
}

/** Which partitions a request is about. */
type Asked = Pick<BackfillPreviewBody, 'partitions' | 'skip_existing'>

/** The partitions that flags mean. They must say so: all of them is too much to be meant by silence. */
export function selectorOf(flags: PartitionFlags): Asked {
  const { start, end, partitions, filter, only, all, skipExisting } = flags
  const isRange = start !== undefined || end !== undefined
  const said = [
    isRange && '--start',
    partitions !== undefined && '--partitions',
    filter !== undefined && '--filter',
    all && '--all',
  ].filter((flag) => typeof flag === 'string')
  const state = only === 'missing' || only === 'failed' || only === 'stale' ? only : undefined
  const [first, second] = said
  if (second !== undefined) throw badFlag(`${first} and ${second} cannot be combined`, 'Give one of them.')
  const isNamed = partitions !== undefined || filter !== undefined
  if (state !== undefined && state !== 'missing' && isNamed)
    throw badFlag(
      `--only ${state} and ${first} cannot be combined`,
      `Limit it by --start and --end instead. Only --only missing can be combined with ${first}.`,
    )
  // What is missing among partitions that are named is what does not exist of them.
  const existing = skipExisting || (state === 'missing' && isNamed) ? { skip_existing: true } : {}
  if (partitions !== undefined) return { partitions: { type: 'explicit', partition_keys: listed(partitions) }, ...existing }
  if (filter !== undefined) return { partitions: { type: 'filter', filters: filtersOf(filter) }, ...existing }
  if (state !== undefined) {
    const within = { ...(start !== undefined && { start }), ...(end !== undefined && { end }) }
    return { partitions: { type: state, ...within }, ...existing }
  }
  if (start !== undefined && end !== undefined) return { partitions: { type: 'range', start, end }, ...existing }
  if (isRange) throw badFlag(`missing option ${start === undefined ? '--start' : '--end'}`, 'A range has both ends.')
  if (all) return { partitions: { type: 'all' }, ...existing }
  throw badFlag('which partitions?', 'Give --start and --end, --partitions, --filter, --only missing, or --all.')
}

/** Commas stand between keys; but a key of several dimensions, `day=2025-01-01,region=eu`, has commas of its own and stands alone. */
function listed(partitions: readonly string[]): string[] {
  const keys = partitions.flatMap((each) => (each.includes('=') ? [each] : each.split(','))).map((key) => key.trim())
  if (keys.every((key) => key !== '')) return keys
  throw badFlag(
    `invalid value '${partitions.join(',')}' for --partitions`,
    'Name partitions, separated by commas: 2025-01-01,2025-01-15',
  )
}

function filtersOf(filters: readonly string[]): Record<string, string> {
  const found = new Map<string, string>()
  for (const filter of filters) {
    const at = filter.indexOf('=')
    if (at <= 0)
      throw badFlag(`invalid value '${filter}' for --filter`, "Use a dimension and a pattern: --filter 'region=eu-*'")
    const [name, pattern] = [filter.slice(0, at), filter.slice(at + 1)]
    const before = found.get(name)
    if (before !== undefined)
      throw badFlag(
        `--filter ${name}=… is given twice`,
        `A dimension has one pattern. For several keys: servo backfills … --partitions ${name}=${before} --partitions ${name}=${pattern}`,
      )
    found.set(name, pattern)
  }
  return Object.fromEntries(found)
}

/** A server names a field of the request in its hint, and a person has typed a flag. */
export async function inPartitionFlags<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (!isServoError(error) || error.hint === undefined) throw error
    const { kind, code, message, hint, facts } = error
    const said = hint.replaceAll('newest_first', '--newest-first')
    throw said === hint ? error : new ServoError(kind, code, message, { hint: said, facts, cause: error })
  }
}
