import type { partitionStatus } from '../../../domain/partitions/partition-status.table.ts'
import { StatusColumns, type Times } from '../../../domain/partitions/status-columns.ts'
import type { SortedFileRef } from '../../../engine/files/file-ref.ts'
import { groupsWith, wholeGroups } from '../../../engine/sorted/file-columns.ts'
import { Mutex } from '../../../lib/mutex.ts'
import type { Row } from '../../../model/table.ts'
import { sameDefinition } from '../../../partitions/definition.ts'
import { type KeyPositions, keyPositions } from '../../../partitions/key-positions.ts'
import { partsOf } from '../../../partitions/key-range.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import type { ColdRowsOf } from '../knowledge.ts'
import { type AlikeRows, alikeRows, applyAlike, applyBlock, applyRow, settleTie } from './load-columns.ts'

type StatusRow = Row<typeof partitionStatus>

export interface AssetToLoad {
  readonly key: string
  /** Its own and those it had before. */
  readonly keys: readonly string[]
  readonly set: PartitionSet
  readonly times: Times
  /** True if every key that was ever recorded is in the set. */
  readonly onlyItsKeys: boolean
}

interface Kept {
  columns: StatusColumns
  readonly keys: readonly string[]
  /** Files that were read. */
  files: ReadonlySet<string>
  changes: number
}

/** Some seven million partitions. */
const MOST_BYTES = 256 * 1024 * 1024

/** Statuses of whole assets that were asked for lately, brought up to date when asked for again. */
export class ColumnsCache {
  readonly #rows: () => ColdRowsOf<StatusRow>
  readonly #mostBytes: number
  /** The last asked for is the last. */
  readonly #kept = new Map<string, Kept>()
  readonly #turn = new Mutex()
  #recent: { readonly changes: number; readonly byAsset: ReadonlyMap<string, readonly StatusRow[]> } | undefined

  constructor(rows: () => ColdRowsOf<StatusRow>, mostBytes = MOST_BYTES) {
    this.#rows = rows
    this.#mostBytes = mostBytes
  }

  /** The statuses of some assets, each with the set of its partitions now. */
  async load(assets: readonly AssetToLoad[]): Promise<Map<string, StatusColumns>> {
    return await this.#turn.run(async () => {
      const rows = this.#rows()
      const reading = {
        rows,
        recent: this.#recentOf(rows),
        files: new Set(rows.files.map(({ path }) => path)),
      }
      const keptOf = new Map<string, Kept>()
      const behind: { asset: AssetToLoad; kept: Kept }[] = []
      for (const asset of assets) {
        const kept = this.#keptOf(asset)
        keptOf.set(asset.key, kept)
        if (kept.changes !== rows.changes || !reading.files.isSubsetOf(kept.files)) behind.push({ asset, kept })
      }
      await readWholes(
        behind.filter(({ asset }) => asset.set.definition === undefined),
        reading,
      )
      const parts = behind.filter(({ asset }) => asset.set.definition !== undefined)
      // All of them are going to be asked for, and together they are there sooner.
      if (parts.length > 0) await Promise.all(rows.files.map((file) => rows.describe(file)))
      for (const each of parts) await readParts(each, reading)
      this.#forget(keptOf)
      // Reading may have made columns anew.
      return new Map([...keptOf].map(([key, { columns }]) => [key, columns]))
    })
  }

  /** What is known of it, perhaps not up to date; nothing when positions mean something else by now. */
  #keptOf({ key, keys, set, times }: AssetToLoad): Kept {
    let kept = this.#kept.get(key)
    this.#kept.delete(key)
    const isSame = kept !== undefined && follows(kept.columns.set, set) && kept.keys.join('\0') === keys.join('\0')
    if (kept === undefined || !isSame || !hasTimes(kept.columns, times)) kept = nothingOf(set, times, keys)
    kept.columns.follow(set)
    this.#kept.set(key, kept)
    return kept
  }

  #recentOf(rows: ColdRowsOf<StatusRow>): ReadonlyMap<string, readonly StatusRow[]> {
    if (this.#recent?.changes === rows.changes) return this.#recent.byAsset
    const byAsset = new Map<string, StatusRow[]>()
    for (const row of rows.recent()) {
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

interface Reading {
  readonly rows: ColdRowsOf<StatusRow>
  readonly recent: ReadonlyMap<string, readonly StatusRow[]>
  /** All files there are. */
  readonly files: ReadonlySet<string>
}

type Behind = { readonly asset: AssetToLoad; readonly kept: Kept }

/** Assets that are made as a whole have a row each, which are looked up together. */
async function readWholes(behind: readonly Behind[], { rows, files }: Reading): Promise<void> {
  const keys = behind.flatMap(({ asset }) => asset.keys.map((key) => [key, '']))
  const found = await rows.lookup(keys)
  let at = 0
  for (const { asset, kept } of behind) {
    for (const _ of asset.keys) {
      const row = found[at++]
      if (row !== undefined) applyRow(kept.columns, row)
    }
    kept.columns.ties.clear()
    kept.files = files
    kept.changes = rows.changes
  }
}

/** Files that were not read yet, and what is in memory. What left memory since is in one of those files. */
async function readParts({ asset, kept }: Behind, reading: Reading): Promise<void> {
  const { rows, recent, files } = reading
  const { columns } = kept
  const positions = keyPositions(asset.set, asset.onlyItsKeys)
  const isUndecided = (): boolean => columns.wantsMade && !columns.times.made
  // The newest are small, and show early whether it matters after all when partitions were made.
  for (const file of columns.times.made ? rows.files : rows.files.toReversed()) {
    if (kept.files.has(file.path)) continue
    for (const key of asset.keys) if (!isUndecided()) await readFile(file, key, columns, positions, rows)
  }
  for (const key of asset.keys) for (const row of recent.get(key) ?? []) applyRow(columns, row)
  if (isUndecided()) {
    // Once: from now on it is known of all.
    Object.assign(kept, nothingOf(asset.set, { ...asset.times, made: true }, asset.keys))
    await readParts({ asset, kept }, reading)
    return
  }
  if (columns.ties.size > 0) {
    const tied = [...columns.ties].map((position) => [asset.key, asset.set.at(position)])
    for (const row of await rows.lookup(tied)) if (row !== undefined) settleTie(columns, row)
    columns.ties.clear()
  }
  kept.files = files
  kept.changes = rows.changes
}

/** Reads of the blocks of one file what they do not say of themselves. */
async function readFile(
  file: SortedFileRef,
  key: string,
  columns: StatusColumns,
  positions: KeyPositions,
  rows: ColdRowsOf<StatusRow>,
): Promise<void> {
  const { made, inputs } = columns.times
  const description = await rows.describe(file)
  const alike = new Map<number, AlikeRows>()
  for (const { at, ends, digest } of wholeGroups(description, key)) {
    const found = digest && alikeRows(digest, ends, positions)
    if (found !== undefined) alike.set(at, found)
  }
  if (!made && [...alike.values()].some(({ first, count }) => !columns.isUnknown(first, count))) {
    columns.wantsMade = true
    return
  }
  if (!made && !inputs) for (const each of alike.values()) applyAlike(columns, each)
  const isWanted = (at: number): boolean => made || inputs || !alike.has(at)
  if (!groupsWith(description, key).some(isWanted)) return
  for await (const part of rows.columns(file, key, isWanted)) {
    const one = alike.get(part.at)
    if (one === undefined || !applyAlike(columns, one, part.block)) applyBlock(columns, part, positions)
  }
}

function nothingOf(set: PartitionSet, times: Times, keys: readonly string[]): Kept {
  return { columns: new StatusColumns(set, times), keys, files: new Set(), changes: -1 }
}

const hasTimes = ({ times }: StatusColumns, wanted: Times): boolean =>
  (times.made || !wanted.made) && (times.inputs || !wanted.inputs)

/** Whether positions still mean the same: nothing is gone, and what came is behind. */
function follows(before: PartitionSet, now: PartitionSet): boolean {
  if (before.definition === undefined || now.definition === undefined) return before.definition === now.definition
  if (!sameDefinition(before.definition, now.definition)) return false
  const parts = partsOf(now)
  return partsOf(before).every((part, i) => {
    const other = parts[i]
    if (other === undefined) return false
    // Windows follow each other; only those of the dimension that varies slowest may become more without moving others.
    if (part.axis !== undefined) return part.count === other.count || (i === 0 && part.count < other.count)
    if (part.definition?.type === 'keys') return true
    return part.count === other.count && [...part.keys()].every((key, at) => other.at(at) === key)
  })
}
