import type { InputRef } from '../../contract/dispatch.ts'
import { messageOf } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { AnyAsset } from '../any-asset.ts'
import { columnsOf, type DataColumn } from '../columns.ts'
import { optionsOf } from '../declaration.ts'
import type { AssetOptions } from '../declare/asset-options.ts'
import { isQuery } from '../declare/sql.ts'
import { type DataRow, type DataTable, isTable, type ValueStore, type Written, type WrittenFile } from '../declare/values.ts'
import { invalid, show } from '../invalid.ts'
import type { PartitionText } from '../partitions/partition-key.ts'
import { isRanges } from '../partitions/ranges.ts'
import { issuesText, type StandardSchemaV1 } from '../standard-schema.ts'
import { describeShape } from './describe-shape.ts'
import { findMisfit } from './not-json.ts'

export interface MakeOptions {
  readonly partition?: PartitionText | null | undefined
  readonly signal: AbortSignal
  readonly store: ValueStore
}

/** The value of a body, and its stored form; nothing when it keeps its own data. */
export interface MadeValue {
  readonly value: unknown
  readonly written: Written | undefined
}

/** Rows are always stored. */
export interface KeptRows extends MadeValue {
  readonly written: WrittenFile
}

type AnyAssetOptions = AssetOptions<unknown, unknown, unknown, unknown, unknown>
/** A table has one of the two. */
interface AnyTableOptions {
  readonly schema: StandardSchemaV1<unknown, DataRow>
  run?(given: object): unknown
  sql?(given: object): unknown
}

export async function makeValue(asset: AnyAsset, given: object, { store, signal }: MakeOptions): Promise<MadeValue> {
  const { run, io, partitions } = optionsOf<AnyAssetOptions>(asset)
  const value = await run(given as never)
  signal.throwIfAborted()
  if (value === undefined) return { value, written: undefined }
  if (isRanges(partitions))
    throw invalid(
      'range_value',
      `${asset.key} materializes ranges but returned ${describeShape(value)}: Servo cannot split a value by partition`,
      'Store the data yourself and return nothing, or remove ranges().',
    )
  if (io === undefined) return { value, written: await store.writeJson(jsonText(asset.key, value)) }
  const bytes = await io.write(value)
  return { value, written: await store.writeBytes(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes) }
}

/** A stored value must come back as it was: a Date would come back as text, so it is refused here. */
function jsonText(key: string, value: unknown): string {
  try {
    return canonicalJson(value)
  } catch (error) {
    const found = findMisfit(value)
    const why = found === undefined ? messageOf(error) : `${found.path} is ${found.what}`
    const instead = found?.instead ?? 'Return null, booleans, finite numbers, text, lists and plain objects'
    throw invalid('not_json', `the value of ${key} cannot be stored as JSON: ${why}`, `${instead}, or give the asset an io.`)
  }
}

export async function makeTable(asset: AnyAsset, given: object, attempt: MakeOptions): Promise<MadeValue> {
  const options = optionsOf<AnyTableOptions>(asset)
  const rows = options.run ? await options.run(given) : await queryRows(asset.key, options, given, attempt.store)
  attempt.signal.throwIfAborted()
  if (isQuery(rows))
    throw invalid('not_rows', `run of ${asset.key} returns a query`, 'Put it into sql: sql: (inputs) => sql`select …`.')
  if (!isIterable(rows))
    throw invalid(
      'not_rows',
      `table ${asset.key} must return rows, not ${describeShape(rows)}`,
      'Return an array of rows, or any iterable.',
    )
  return keepRows(asset, rows, asset.key, attempt)
}

/** Validates rows by the schema of the asset and stores them. `origin` is what errors call the place where they come from. */
export async function keepRows(asset: AnyAsset, rows: AnyRows, origin: string, attempt: MakeOptions): Promise<KeptRows> {
  const { store, signal } = attempt
  const { schema } = optionsOf<Pick<AnyTableOptions, 'schema'>>(asset)
  const columns = columnsOf(schema)
  const written = await store.writeRows(validRows(origin, rows, schema, columns ?? [], signal), columns)
  const stored = { partition_key: attempt.partition?.key ?? '', materialization_id: '', path: written.path }
  const ref: InputRef = { asset_key: asset.key, io: 'parquet', many: false, values: [stored] }
  return { value: await store.openTable(ref, columns), written }
}

async function queryRows(
  key: string,
  options: AnyTableOptions,
  given: object,
  store: ValueStore,
): Promise<AsyncIterable<DataRow>> {
  const query = await options.sql?.(given)
  if (!isQuery(query))
    throw invalid('not_a_query', `sql of ${key} must return a query, not ${show(query)}`, 'Return sql`select …`.')
  const tables = Object.entries(given).filter((entry): entry is [string, DataTable<DataRow>] => isTable(entry[1]))
  return store.runSql(query, Object.fromEntries(tables), columnsOf(options.schema))
}

type AnyRows = Iterable<DataRow> | AsyncIterable<DataRow>

const isIterable = (rows: unknown): rows is AnyRows =>
  typeof rows === 'object' && rows !== null && (Symbol.iterator in rows || Symbol.asyncIterator in rows)

async function* validRows(
  origin: string,
  rows: AnyRows,
  schema: StandardSchemaV1<unknown, DataRow>,
  columns: readonly DataColumn[],
  signal: AbortSignal,
): AsyncGenerator<DataRow> {
  const asJson = columns.filter(({ type }) => type === 'json').map(({ name }) => name)
  let number = 0
  for await (const row of rows) {
    number++
    signal.throwIfAborted()
    const checking = schema['~standard'].validate(row)
    const result = checking instanceof Promise ? await checking : checking
    if (result.issues !== undefined)
      throw invalid(
        'row_does_not_fit',
        `row ${number} of ${origin} does not match its schema: ${issuesText(result.issues)}`,
        'Fix the row, or change the schema if the row is right.',
      )
    for (const name of asJson) checkJson(`${name} of row ${number} of ${origin}`, result.value[name])
    yield result.value
  }
}

/** A schema that ends in a transform does not declare its output type, so the value is kept as JSON, as lists and objects are. */
function checkJson(where: string, value: unknown): void {
  try {
    if (value !== undefined) canonicalJson(value)
  } catch (error) {
    throw invalid(
      'not_json',
      `${where} cannot be stored: ${messageOf(error)}`,
      'Let the schema end with what the column holds: z.string().transform(…).pipe(z.date()).',
    )
  }
}
