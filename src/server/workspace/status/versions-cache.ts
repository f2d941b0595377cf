import type { DataVersionRow, dataVersions } from '../../../domain/partitions/data-versions.table.ts'
import { type SameData, VersionLog } from '../../../domain/partitions/same-data.ts'
import type { StatusColumns } from '../../../domain/partitions/status-columns.ts'
import type { BlockPart } from '../../../engine/sorted/file-columns.ts'
import { type KeyPositions, keyPositions } from '../../../partitions/key-positions.ts'
import type { ColdRowsOf } from '../knowledge.ts'
import type { AssetToLoad } from './columns-cache.ts'
import { inOrder } from './load-columns.ts'

const columnName = <Name extends keyof typeof dataVersions.columns>(name: Name): Name => name
const KEY = columnName('partition_key')
const MADE_AT = columnName('materialized_at')
const MADE_ORDER = columnName('materialized_order')
const VERSION = columnName('data_version')

interface KeptVersions {
  readonly same: SameData
  /** What it was made of. */
  readonly columns: StatusColumns
  readonly version: number
  readonly count: number
  readonly files: string
  readonly recent: number
}

/** Assets whose versions are kept. The versions of a hundred thousand partitions take a megabyte. */
const MAX_ASSETS = 32

/** Keeps when partitions had the data that they have now, for assets that were asked for recently. */
export class VersionsCache {
  readonly #rows: () => ColdRowsOf<DataVersionRow>
  /** In order of use: the last is the most recently used. */
  readonly #kept = new Map<string, KeptVersions>()
  #recent: { readonly changes: number; readonly byAsset: ReadonlyMap<string, readonly DataVersionRow[]> } | undefined

  constructor(rows: () => ColdRowsOf<DataVersionRow>) {
    this.#rows = rows
  }

  async load({ key, keys, onlyItsKeys }: AssetToLoad, columns: StatusColumns): Promise<SameData> {
    const rows = this.#rows()
    const recent = keys.flatMap((each) => this.#recentOf(rows).get(each) ?? [])
    const state = {
      columns,
      version: columns.version,
      count: columns.set.count,
      files: rows.files.map(({ path }) => path).join('\n'),
      // Rows are written once, and leave memory only for a file.
      recent: recent.length,
    }
    const kept = this.#kept.get(key)
    this.#kept.delete(key)
    const isCurrent =
      kept?.columns === columns &&
      kept.version === state.version &&
      kept.count === state.count &&
      kept.files === state.files &&
      kept.recent === state.recent
    const same = isCurrent ? kept.same : await readVersions(rows, keys, recent, columns, onlyItsKeys)
    this.#kept.set(key, { ...state, same })
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= MAX_ASSETS) break
      this.#kept.delete(oldest)
    }
    return same
  }

  #recentOf(rows: ColdRowsOf<DataVersionRow>): ReadonlyMap<string, readonly DataVersionRow[]> {
    if (this.#recent?.changes === rows.changes) return this.#recent.byAsset
    const byAsset = Map.groupBy(rows.recent(), ({ asset_key }) => asset_key)
    this.#recent = { changes: rows.changes, byAsset }
    return byAsset
  }
}

async function readVersions(
  rows: ColdRowsOf<DataVersionRow>,
  keys: readonly string[],
  recent: readonly DataVersionRow[],
  columns: StatusColumns,
  onlyItsKeys: boolean,
): Promise<SameData> {
  const log = new VersionLog(columns)
  const positions = keyPositions(columns.set, onlyItsKeys)
  for (const file of rows.files)
    for (const key of keys) for await (const part of rows.columns(file, key)) readBlock(log, part, positions)
  for (const { partition_key, materialized_at, materialized_order, data_version } of recent) {
    const position = columns.set.positionOf(partition_key)
    if (position === undefined) continue
    log.add(position, materialized_order ?? materialized_at, log.versionOf(data_version), materialized_at)
  }
  return log.read()
}

function readBlock(log: VersionLog, { block, from, to }: BlockPart, keys: KeyPositions): void {
  const positions = keys.of(block.texts(KEY), from, to)
  const times = block.times(MADE_AT)
  const orders = inOrder(block, MADE_ORDER, times)
  const { codes, values } = block.words(VERSION)
  const versions = values.map((version) => log.versionOf(version))
  for (let row = from; row < to; row++) {
    const position = positions[row - from] ?? -1
    if (position >= 0) log.add(position, orders[row] ?? 0, versions[codes[row] ?? -1] ?? -1, times[row])
  }
}
