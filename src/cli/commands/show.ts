import { join } from 'node:path'
import type { Plain } from '../../adapters/duckdb/plain-values.ts'
import type { QueryResult } from '../../adapters/duckdb/read-only-query.ts'
import type { PartitionStatus, StatusApi } from '../../api/status-contract.ts'
import type { AssetDefinition } from '../../contract/project-manifest.ts'
import type { StoredOutput } from '../../contract/stored-output.ts'
import { ServoError } from '../../lib/error.ts'
import { shellWord } from '../../lib/process/shell-word.ts'
import { readKey } from '../../partitions/key.ts'
import { materializeCommand } from '../../server/materialize-command.ts'
import { checkSize, checkStoredPath, throwMissing } from '../../worker/values/stored-file.ts'
import { ask } from '../ask-and-tell.ts'
import { wholeNumber } from '../flags.ts'
import { chosenColumns, note, print, printable } from '../output.ts'
import { componentsOf, findProject, type ProjectFlags } from '../project.ts'
import { writeCsv, writeJson, writeTable } from '../rows.ts'
import { shortId } from '../show-run.ts'
import { isFailedFirst } from './partition-status.ts'

export interface ShowFlags extends ProjectFlags {
  partition?: string
  limit?: string
  format?: 'table' | 'json' | 'csv'
}

/** Rows are held in memory, because the last one may bring a column. */
const MAX_ROWS = 100_000
/** As many as one looks through. */
const SHOWN_ROWS = 50

/** Shows the rows or the value that the current materializations of an asset stored. */
export async function showValue(key: string, flags: ShowFlags): Promise<void> {
  const format = flags.json ? 'json' : (flags.format ?? 'table')
  // What another program reads is whole; a person looks at the first rows.
  const isExport = flags.limit === undefined && format !== 'table' && !process.stdout.isTTY
  const limit = isExport ? MAX_ROWS : wholeNumber('--limit', flags.limit ?? String(SHOWN_ROWS), { min: 1, max: MAX_ROWS })
  const readValue = await valueReader(findProject(flags))
  const found = await ask(
    flags,
    async ({ assets, statuses }) => {
      const { definition } = await assets.get(key)
      if (flags.partition !== undefined && !definition.partitions) throw noPartitions(key)
      return await readCurrent({ definition, statuses, readValue, partition: flags.partition, limit })
    },
    { ofCode: true },
  )
  if (isExport && found.isMore) throw tooManyRows(key)
  const [first] = found.rows
  // One value is shown as it is; several are rows of a table.
  if (found.isOne && first !== undefined && first.kind === 'json' && format !== 'csv') {
    if (chosenColumns() !== undefined) throw noColumns(key)
    const { value } = first.row
    print(printable(JSON.stringify(value, null, 2)))
  } else if (first === undefined && format === 'table') note(`${key} has no rows`)
  else await { table: writeTable, json: writeJson, csv: writeCsv }[format](tableOf(found))
  if (found.isMore) note('there are more rows; --limit shows more of them')
}

interface ShownRow {
  readonly kind: 'rows' | 'json' | 'file'
  /** The partition, as columns. */
  readonly partition: Readonly<Record<string, string>>
  readonly row: Readonly<Record<string, unknown>>
}

interface Question {
  readonly definition: AssetDefinition
  readonly statuses: StatusApi
  readonly readValue: ValueReader
  readonly partition: string | undefined
  readonly limit: number
}

interface Found {
  readonly rows: readonly ShownRow[]
  readonly columns: ReadonlySet<string>
  /** The columns of the partition. */
  readonly ofPartition: ReadonlySet<string>
  readonly isOne: boolean
  readonly isMore: boolean
}

/** The rows of current materializations, those of the newest partition first. */
async function readCurrent({ definition, statuses, readValue, partition, limit }: Question): Promise<Found> {
  const rows: ShownRow[] = []
  const [columns, ofPartition] = [new Set<string>(), new Set<string>()]
  const found = { rows, columns, ofPartition, isOne: false, isMore: false }
  let [made, stored] = [0, 0]
  let failed: PartitionStatus | undefined
  for await (const status of statusesOf(statuses, definition.asset_key, partition)) {
    if (isFailedFirst(status)) failed ??= status
    if (status.status === 'NEVER_MATERIALIZED') continue
    made++
    if (!status.stored) continue
    stored++
    const { kind, read, columnsOf } = readValue(status.stored, status)
    const inColumns = partitionColumns(definition, status.partition_key)
    for (const name of Object.keys(inColumns)) ofPartition.add(name)
    let isMore = false
    for await (const row of read()) {
      isMore = rows.length === limit
      if (isMore) break
      rows.push({ kind, partition: inColumns, row })
    }
    // A row lacks the columns that are undefined in it, so the file tells which there are.
    for (const name of await columnsOf()) columns.add(name)
    if (isMore) return { ...found, isMore }
  }
  if (made === 0) throw failed === undefined ? neverMaterialized(definition, partition) : onlyFailed(failed)
  if (stored === 0) throw noValue(definition, partition)
  return { ...found, isOne: stored === 1 && (partition !== undefined || !definition.partitions) }
}

/** As many as the server answers at a time. */
const PAGE = 1_000

async function* statusesOf(
  statuses: StatusApi,
  select: string,
  partition: string | undefined,
): AsyncGenerator<PartitionStatus> {
  let cursor: string | undefined
  do {
    const page = await statuses.list({ select, partition, order: 'newest', values: true, limit: PAGE, cursor })
    yield* page.partitions
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}

function partitionColumns({ partitions }: AssetDefinition, key: string): Record<string, string> {
  if (!partitions) return {}
  if (partitions.type !== 'multi') return { partition: key }
  return Object.fromEntries(Object.entries(readKey(key)).map(([name, value]) => [`partition_${name}`, value]))
}

type ValueReader = (
  stored: StoredOutput,
  status: PartitionStatus,
) => {
  kind: ShownRow['kind']
  read: () => AsyncIterable<Record<string, unknown>>
  columnsOf: () => Promise<readonly string[]>
}

/** Reads values by how they are stored: the rows of a table, JSON as one row, in a file or not, and of any other file where it lies and its size. */
async function valueReader(projectDir: string): Promise<ValueReader> {
  const { dataDir } = await componentsOf(projectDir)
  const { folderStore } = await import('../../server/components.ts')
  const store = folderStore(dataDir)
  const fileOf = (name: string): string => join(dataDir, name)
  const { valuesIn } = await import('../../worker/values/stored-values.ts')
  const values = valuesIn({ store, fileOf, projectDir })
  return (stored, { asset_key, partition_key }) => {
    const path = stored.path ?? ''
    const name = partition_key === '' ? asset_key : `${asset_key}[${partition_key}]`
    const value = { partition_key, materialization_id: name, ...stored }
    if (path.endsWith('.parquet')) {
      const ref = { asset_key, io: 'parquet', many: false, values: [value] }
      return {
        kind: 'rows',
        read: async function* () {
          yield* await values.openTable(ref, undefined)
        },
        columnsOf: async () => {
          const { columnNames } = await import('../../worker/values/rows-read.ts')
          return await columnNames(fileOf(path))
        },
      }
    }
    if (stored.value !== null || path.endsWith('.json'))
      return {
        kind: 'json',
        read: async function* () {
          yield { value: await values.readJson(value) }
        },
        columnsOf: async () => ['value'],
      }
    return {
      kind: 'file',
      read: async function* () {
        checkStoredPath(path, fileOf)
        const bytes = (await store.size(path)) ?? throwMissing(path)
        checkSize(path, bytes, stored)
        yield { path: fileOf(path), bytes }
      },
      columnsOf: async () => ['path', 'bytes'],
    }
  }
}

/** Rows as the answer to a query. Partitions may have been written before a column was added, so columns are matched by name. */
function tableOf({ rows: shown, columns, ofPartition }: Found): QueryResult {
  const own = [...columns]
  const isNumber = (name: string): boolean =>
    shown.every(({ row }) => row[name] == null || typeof row[name] === 'number' || typeof row[name] === 'bigint')
  // Times stand whole on a screen.
  const isTime = (name: string): boolean => shown.every(({ row }) => row[name] == null || row[name] instanceof Date)
  return {
    columns: [
      ...[...ofPartition].map((name) => ({ name: freeName(name, own), type: 'VARCHAR' })),
      ...own.map((name) => ({ name, type: isNumber(name) ? 'DOUBLE' : isTime(name) ? 'TIMESTAMP' : 'VARCHAR' })),
    ],
    async *rows() {
      if (shown.length === 0) return
      yield shown.map(({ partition, row }) => [...Object.values(partition), ...own.map((name) => plainOf(row[name]))])
    },
  }
}

/** A table may have a column of this name itself. Then the one of the partition is called as `servo query` calls it. */
function freeName(name: string, taken: readonly string[]): string {
  for (let number = 0; ; number++) {
    const free = number === 0 ? name : `${name}_${number}`
    if (!taken.includes(free)) return free
  }
}

/** A value of a row as JSON has it. Nothing is lost: JSON cannot hold every bigint exactly, so all of them are text, as in their whole column. */
function plainOf(value: unknown): Plain {
  if (value === null || value === undefined) return null
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map(plainOf)
  if (typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, plainOf(item)]))
  return typeof value === 'boolean' ? value : String(value)
}

const nameOf = (key: string, partition: string | undefined): string => (partition === undefined ? key : `${key}[${partition}]`)

const noPartitions = (key: string): ServoError =>
  new ServoError('invalid', 'no_partitions', `${key} has no partitions`, { hint: 'Leave --partition out.' })

const tooManyRows = (key: string): ServoError =>
  new ServoError('invalid', 'too_many_rows', `${key} has more than ${MAX_ROWS.toLocaleString('en')} rows`, {
    hint: `Use servo query ${shellWord(`from "${key}"`)} --csv (or --json), which prints any number, or choose some with --limit.`,
  })

const noColumns = (key: string): ServoError =>
  new ServoError('invalid', 'unknown_field', `${key} is a JSON value, not a table, so there are no columns to choose`, {
    hint: `Use servo show ${key} --json alone.`,
  })

function neverMaterialized(definition: AssetDefinition, partition: string | undefined): ServoError {
  const { asset_key, kind, uri } = definition
  if (kind === 'source') return storesNothing(asset_key, uri)
  const what = nameOf(asset_key, partition)
  return new ServoError('not_found', 'never_materialized', `${what} was never materialized, or was wiped`, {
    hint: `Materialize it: ${materializeCommand(definition, partition)}`,
  })
}

function onlyFailed({ asset_key, partition_key, last_attempt_run_id }: PartitionStatus): ServoError {
  const what = nameOf(asset_key, partition_key === '' ? undefined : partition_key)
  const run = shortId(last_attempt_run_id ?? '')
  return new ServoError(
    'not_found',
    'never_materialized',
    `${what} was never materialized: its last attempt failed in ${run}`,
    {
      hint: `See why: servo runs show ${run}`,
    },
  )
}

function noValue({ asset_key, kind, uri }: AssetDefinition, partition: string | undefined): ServoError {
  if (kind === 'source') return storesNothing(asset_key, uri)
  return new ServoError('not_found', 'no_value', `${nameOf(asset_key, partition)} has no stored value`, {
    hint: 'It returned nothing, stores its data itself, or was only reported (servo partitions report).',
  })
}

const storesNothing = (key: string, uri: string | null | undefined): ServoError =>
  new ServoError('not_found', 'no_value', `${key} is a source; Servo does not store its data`, {
    ...(uri && { hint: `Its data is at ${uri}.` }),
  })
