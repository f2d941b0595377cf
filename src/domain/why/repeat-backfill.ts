import { shellWord } from '../../lib/process/shell-word.ts'
import type { BackfillRow } from '../backfills/backfills.table.ts'
import type { PartitionSelector } from '../backfills/partition-selector.ts'

/** A longer list stands in a command as an ellipsis. */
const MAX_WORDS = 20

const words = (all: readonly string[], flag = ''): string =>
  all.length > MAX_WORDS ? `${flag}…` : all.map((each) => flag + shellWord(each)).join(' ')

/** The command that makes what a backfill left undone: the same again, of what does not exist. */
export function repeatCommand(backfill: Readonly<BackfillRow>): string {
  const { asset_selection, partition_selector, parent_backfill_id } = backfill
  if (parent_backfill_id !== null) return `servo backfills retry-failed ${parent_backfill_id}`
  return `servo backfills create ${words(asset_selection)} ${flagsOf(partition_selector)}`
}

function flagsOf(selector: PartitionSelector): string {
  switch (selector.type) {
    case 'range':
      return `${within(selector)} --skip-existing`
    case 'explicit':
      return `${words(selector.partition_keys, '--partitions ')} --skip-existing`
    case 'filter': {
      const filters = Object.entries(selector.filters).map(([name, pattern]) => `${name}=${pattern}`)
      return `${words(filters, '--filter ')} --skip-existing`
    }
    case 'missing':
    case 'failed':
    case 'stale':
      return [`--only ${selector.type}`, within(selector)].filter(Boolean).join(' ')
    default:
      return '--all --skip-existing'
  }
}

const within = ({ start, end }: { start?: string | null | undefined; end?: string | null | undefined }): string =>
  [start != null && `--start ${shellWord(start)}`, end != null && `--end ${shellWord(end)}`].filter(Boolean).join(' ')
