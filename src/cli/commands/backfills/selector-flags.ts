import type { PartitionSelector } from '../../../domain/backfills/partition-selector.ts'
import { badFlag, labelsFlag } from '../../flags.ts'

export interface PartitionFlags {
  start?: string
  end?: string
  partitions?: string[]
  filter?: string[]
  only?: string
  all?: boolean
}

/** The partitions that flags mean. They must say so: all of them is too much to be meant by silence. */
export function selectorOf({ start, end, partitions, filter, only, all }: PartitionFlags): PartitionSelector {
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
  if (state !== undefined) {
    if (first !== undefined && !isRange && !all)
      throw badFlag(`--only and ${first} cannot be combined`, 'Give --start and --end.')
    return { type: state, ...(start !== undefined && { start }), ...(end !== undefined && { end }) }
  }
  if (partitions !== undefined) return { type: 'explicit', partition_keys: listed(partitions) }
  if (filter !== undefined) return { type: 'filter', filters: labelsFlag(filter, '--filter') }
  if (start !== undefined && end !== undefined) return { type: 'range', start, end }
  if (isRange) throw badFlag(`missing option ${start === undefined ? '--start' : '--end'}`, 'A range has both ends.')
  if (all) return { type: 'all' }
  throw badFlag('which partitions?', 'Give --start and --end, --partitions, --filter, --only missing, or --all.')
}

function listed(partitions: readonly string[]): string[] {
  const keys = partitions.flatMap((each) => each.split(',')).map((key) => key.trim())
  if (keys.every((key) => key !== '')) return keys
  throw badFlag(
    `invalid value '${partitions.join(',')}' for --partitions`,
    'Name partitions, separated by commas: 2025-01-01,2025-01-15',
  )
}
