import type { StatusRow } from '../../../domain/partitions/partition-status.table.ts'
import { StatusColumns, type Times } from '../../../domain/partitions/status-columns.ts'
import type { SortedFileRef } from '../../../engine/files/file-ref.ts'
import { groupsWith, wholeGroups } from '../../../engine/sorted/file-columns.ts'
import { Mutex } from '../../../lib/mutex.ts'
import { sameDefinition } from '../../../partitions/definition.ts'
import { type KeyPositions, keyPositions } from '../../../partitions/key-positions.ts'
import { partsOf } from '../../../partitions/key-range.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import type { ColdRowsOf } from '../knowledge.ts'
import { type AlikeRows, alikeRows, applyAlike, applyBlock, applyRow, breakTie } from './load-columns.ts'

export interface AssetToLoad {
  readonly key: string
  /** The key of the asset and its former keys. */
  readonly keys: readonly string[]
  readonly set: PartitionSet
  readonly times: Times
  /** True if every key that was ever recorded is in the set. */
  readonly onlyItsKeys: boolean
}

interface CachedColumns {
  columns: StatusColumns
  readonly keys: readonly string[]
  /** The files that were read. */
  files: ReadonlySet<string>
  changes: number
}

/** Room for some seven million partitions. */
const MAX_BYTES = 256 * 1024 * 1024

/** Keeps the statuses of recently requested assets, and brings them up to date on the next request. */
export class ColumnsCache {
  readonly #rows: () => ColdRowsOf<StatusRow>
  readonly #maxBytes: number
  /** In order of use: the last is the most recently used. */
  readonly #kept = new Map<string, CachedColumns>()
  readonly #turn = new Mutex()
  #recent: { readonly changes: number; readonly byAsset: ReadonlyMap<string, readonly StatusRow[]> } | undefined

  constructor(rows: () => ColdRowsOf<StatusRow>, maxBytes = MAX_BYTES) {
    this.#rows = rows
    this.#maxBytes = maxBytes
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
      const keptOf = new Map<string, CachedColumns>()
      const behind: { asset: AssetToLoad; kept: CachedColumns }[] = []
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
      // All of them will be needed, and reading them together is faster.
      if (parts.length > 0) await Promise.all(rows.files.map((file) => rows.describe(file)))
      for (const each of parts) await readParts(each, reading)
      this.#forget(keptOf)
      // Reading may have replaced the columns.
      return new Map([...keptOf].map(([key, { columns }]) => [key, columns]))
    })
  }

  /** The cached columns of an asset, perhaps out of date; empty ones when its positions mean something else by now. */
  #keptOf({ key, keys, set, times }: AssetToLoad): CachedColumns {
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
      if (bytes <= this.#maxBytes) return
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

type Behind = { readonly asset: AssetToLoad; readonly kept: CachedColumns }

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

/** Reads the files that were not read yet, then memory. A row that left memory since is in one of those files. */
async function readParts({ asset, kept }: Behind, reading: Reading): Promise<void> {
  const { rows, recent, files } = reading
  const { columns } = kept
  const positions = keyPositions(asset.set, asset.onlyItsKeys)
  const isUndecided = (): boolean => columns.wantsMade && !columns.times.made
  // The newest files are small, and show early whether the times of materializations matter after all.
  for (const file of columns.times.made ? rows.files : rows.files.toReversed()) {
    if (kept.files.has(file.path)) continue
    for (const key of asset.keys) if (!isUndecided()) await readFile(file, key, columns, positions, rows)
  }
  for (const key of asset.keys) for (const row of recent.get(key) ?? []) applyRow(columns, row)
  if (isUndecided()) {
    // This happens once; from now on the columns have the times of all.
    Object.assign(kept, nothingOf(asset.set, { ...asset.times, made: true }, asset.keys))
    await readParts({ asset, kept }, reading)
    return
  }
  if (columns.ties.size > 0) {
    const tied = [...columns.ties].map((position) => [asset.key, asset.set.at(position)])
    for (const row of await rows.lookup(tied)) if (row !== undefined) breakTie(columns, row)
    columns.ties.clear()
  }
  kept.files = files
  kept.changes = rows.changes
}

/** Reads the blocks of a file whose digest is not enough. */
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

function nothingOf(set: PartitionSet, times: Times, keys: readonly string[]): CachedColumns {
  return { columns: new StatusColumns(set, times), keys, files: new Set(), changes: -1 }
}

const hasTimes = ({ times }: StatusColumns, wanted: Times): boolean =>
  (times.made || !wanted.made) && (times.inputs || !wanted.inputs)

/** True if positions still mean the same: no partition is gone, and new ones are at the end. */
function follows(before: PartitionSet, now: PartitionSet): boolean {
  if (before.definition === undefined || now.definition === undefined) return before.definition === now.definition
  if (!sameDefinition(before.definition, now.definition)) return false
  const parts = partsOf(now)
  return partsOf(before).every((part, i) => {
    const other = parts[i]
    if (other === undefined) return false
    // Windows are added at the end of their dimension; positions stay the same only if that dimension varies slowest.
    if (part.axis !== undefined) return part.count === other.count || (i === 0 && part.count < other.count)
    if (part.definition?.type === 'keys') return true
    return part.count === other.count && [...part.keys()].every((key, at) => other.at(at) === key)
  })
}
