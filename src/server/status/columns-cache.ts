import type { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { StatusColumns } from '../../domain/partitions/status-columns.ts'
import type { ColdRowsToRead } from '../../engine/cold-rows.ts'
import { Mutex } from '../../lib/mutex.ts'
import type { Row } from '../../model/table.ts'
import { sameDefinition } from '../../partitions/definition.ts'
import { partsOf } from '../../partitions/key-range.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'
import { keyPositions } from './key-positions.ts'
import { Scratch, settleTie, takeBlock, takeRow } from './load-columns.ts'

type StatusRow = Row<typeof partitionStatus>

export interface AssetToLoad {
  readonly key: string
  readonly set: PartitionSet
  /** Whether no key was ever recorded that the set does not have. */
  readonly onlyItsKeys: boolean
}

interface Kept {
  readonly columns: StatusColumns
  /** Files that were read. */
  runs: ReadonlySet<string>
  changes: number
}

/** Some seven million partitions. */
const MOST_BYTES = 256 * 1024 * 1024

/** Statuses of whole assets that somebody asked for lately, brought up to date when asked for again. */
export class ColumnsCache {
  readonly #rows: () => ColdRowsToRead
  readonly #mostBytes: number
  /** The last asked for is the last. */
  readonly #kept = new Map<string, Kept>()
  readonly #turn = new Mutex()
  #recent: { readonly changes: number; readonly byAsset: ReadonlyMap<string, readonly StatusRow[]> } | undefined

  constructor(rows: () => ColdRowsToRead, mostBytes = MOST_BYTES) {
    this.#rows = rows
    this.#mostBytes = mostBytes
  }

  /** The statuses of some assets, each with the set of its partitions now. */
  async load(assets: readonly AssetToLoad[]): Promise<Map<string, StatusColumns>> {
    return await this.#turn.run(async () => {
      const rows = this.#rows()
      const recent = this.#recentOf(rows)
      const found = new Map<string, StatusColumns>()
      for (const asset of assets) found.set(asset.key, await this.#current(rows, recent.get(asset.key) ?? [], asset))
      this.#forget(found)
      return found
    })
  }

  async #current(
    rows: ColdRowsToRead,
    recent: readonly StatusRow[],
    { key, set, onlyItsKeys }: AssetToLoad,
  ): Promise<StatusColumns> {
    let kept = this.#kept.get(key)
    if (kept === undefined || !follows(kept.columns.set, set)) {
      kept = { columns: new StatusColumns(set), runs: new Set(), changes: -1 }
    }
    const { columns } = kept
    columns.follow(set)
    const keys = keyPositions(set, onlyItsKeys)
    const scratch = new Scratch()
    for (const run of rows.runs) {
      if (kept.runs.has(run.path)) continue
      for await (const part of rows.columns(run, key)) takeBlock(columns, part, keys, scratch)
    }
    // What left memory for a file since then is in a file that was not read yet.
    if (kept.changes !== rows.changes) for (const row of recent) takeRow(columns, row)
    if (columns.ties.size > 0) {
      const tied = [...columns.ties].map((position) => [key, set.at(position)])
      for (const row of await rows.lookup(tied)) if (row !== undefined) settleTie(columns, row as StatusRow)
      columns.ties.clear()
    }
    kept.runs = new Set(rows.runs.map(({ path }) => path))
    kept.changes = rows.changes
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    return columns
  }

  #recentOf(rows: ColdRowsToRead): ReadonlyMap<string, readonly StatusRow[]> {
    if (this.#recent?.changes === rows.changes) return this.#recent.byAsset
    const byAsset = new Map<string, StatusRow[]>()
    for (const row of rows.recent() as Iterable<StatusRow>) {
      const known = byAsset.get(row.asset_key)
      if (known === undefined) byAsset.set(row.asset_key, [row])
      else known.push(row)
    }
    this.#recent = { changes: rows.changes, byAsset }
    return byAsset
  }

  #forget(inUse: ReadonlyMap<string, unknown>): void {
    let bytes = 0
    for (const { columns } of this.#kept.values()) bytes += columns.bytes
    for (const [key, { columns }] of this.#kept) {
      if (bytes <= this.#mostBytes) return
      if (inUse.has(key)) continue
      this.#kept.delete(key)
      bytes -= columns.bytes
    }
  }
}

/** Whether positions still mean the same: nothing is gone, and what came is behind. */
function follows(before: PartitionSet, now: PartitionSet): boolean {
  if (before.definition === undefined || now.definition === undefined) return before.definition === now.definition
  if (!sameDefinition(before.definition, now.definition)) return false
  const parts = partsOf(now)
  return partsOf(before).every((part, i) => {
    const other = parts[i] as PartitionSet
    // Windows follow each other; only those of the dimension that varies slowest may become more without moving others.
    if (part.axis !== undefined) return part.count === other.count || (i === 0 && part.count < other.count)
    if (part.definition?.type === 'keys') return true
    return part.count === other.count && [...part.keys()].every((key, at) => other.at(at) === key)
  })
}
