import { isServoError, messageOf } from '../../lib/error.ts'
import { partitionSet } from '../../partitions/partition-set.ts'
import { type AnyAsset, hasRows } from '../any-asset.ts'
import { prepareQuery } from '../attempt/query-tables.ts'
import { columnsOf, type DataColumn } from '../columns.ts'
import { declarationOf, optionsOf } from '../declaration.ts'
import type { Log } from '../declare/context.ts'
import { isQuery, type Query } from '../declare/sql.ts'
import { createTable, type DataRow, type DataTable, type MaybePromise } from '../declare/values.ts'
import { isOwn, type Upstream, upstream } from '../partitions/mapped.ts'
import { type OpenPartition, openPartition } from '../partitions/partition-key.ts'
import type { AnyPartitions } from '../partitions/partitions.ts'
import type { StandardSchemaV1 } from '../standard-schema.ts'

/** What is known of a query before it runs. */
export type QueryCheck =
  | { readonly outcome: 'fits' }
  | { readonly outcome: 'wrong'; readonly message: string; readonly hint: string | undefined }
  /** It depends on something that exists only when it runs. */
  | { readonly outcome: 'unknown'; readonly reason: string }

interface QueryOptions {
  readonly sql: (given: object) => MaybePromise<unknown>
  readonly inputs?: Readonly<Record<string, Upstream>>
  readonly partitions?: AnyPartitions
  readonly schema: StandardSchemaV1
}

/** True for a table that is made by a query. */
export const isQueried = (asset: AnyAsset): boolean =>
  declarationOf(asset)?.kind === 'table' && typeof optionsOf<Partial<QueryOptions>>(asset).sql === 'function'

/** Prepares the query of a table over empty inputs with the columns that their schemas promise. Nothing is run or read. */
export async function checkQuery(asset: AnyAsset, nowMs: number): Promise<QueryCheck> {
  const options = optionsOf<QueryOptions>(asset)
  const tables: Record<string, DataTable<DataRow>> = {}
  for (const [name, input] of Object.entries(options.inputs ?? {})) {
    if (isOwn(input)) continue
    const { asset: above } = upstream(input, asset)
    const columns = tableColumns(above)
    if (columns === undefined) return unknown(`the columns of ${above.key} are unknown until it is materialized`)
    if (columns !== 'no table') tables[name] = emptyTable(columns)
  }
  const query = await written(options, { ...contextOf(options, nowMs), ...tables })
  if ('reason' in query) return unknown(query.reason)
  try {
    const names = await prepareQuery(query, tables)
    return missingColumns(names, columnsOf(options.schema) ?? [])
  } catch (error) {
    if (!isServoError(error, 'invalid')) throw error
    return { outcome: 'wrong', message: error.message, hint: error.hint }
  }
}

const unknown = (reason: string): QueryCheck => ({ outcome: 'unknown', reason })

/** Undefined if its schema declares none. */
function tableColumns(asset: AnyAsset): readonly DataColumn[] | 'no table' | undefined {
  if (!hasRows(asset)) return 'no table'
  const { schema } = optionsOf<{ schema?: StandardSchemaV1 }>(asset)
  return schema && columnsOf(schema)
}

function emptyTable(columns: readonly DataColumn[]): DataTable<DataRow> {
  return createTable({ files: [], columns, async *read() {}, async *query() {} })
}

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** What the function that writes the query may ask for. Resources are not opened: there is nothing to query yet. */
function contextOf({ partitions }: QueryOptions, nowMs: number): object {
  return {
    partition: partitions && samplePartition(partitions, nowMs),
    attempt: 1,
    runId: 'check',
    signal: new AbortController().signal,
    log: silent,
    metadata() {},
    dataVersion() {},
  }
}

/** Any partition will do: the text of a query seldom depends on which. */
function samplePartition(partitions: AnyPartitions, nowMs: number): OpenPartition | undefined {
  const set = partitionSet(partitions.data, { nowMs, dynamicKeys: () => ['a'] })
  return set.count === 0 ? undefined : openPartition(partitions, { key: set.at(0) })
}

async function written({ sql }: QueryOptions, given: object): Promise<Query | { readonly reason: string }> {
  try {
    const query = await sql(given)
    return isQuery(query) ? query : { reason: 'its query is only known when it runs' }
  } catch (error) {
    return { reason: `its query needs something that exists only when it runs (${messageOf(error)})` }
  }
}

/** A query that leaves out a column fails with its first row. With parameters, DuckDB may know the columns only when it runs. */
function missingColumns(names: readonly string[], columns: readonly DataColumn[]): QueryCheck {
  const missing = columns.filter(({ name, empty }) => empty !== 'undefined' && !names.includes(name)).map(({ name }) => name)
  if (missing.length === 0 || names.length === 0 || names.includes('unknown')) return { outcome: 'fits' }
  return {
    outcome: 'wrong',
    message: `the query does not return ${missing.join(', ')}, which the schema requires`,
    hint: `It returns ${names.join(', ')}. Select the missing columns, or remove them from the schema.`,
  }
}
