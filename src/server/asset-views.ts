import { existsSync } from 'node:fs'
import type { MoreViews, RunSql } from '../adapters/duckdb/read-only-query.ts'
import { isPathOf, OUTPUT_PATH } from '../contract/output-path.ts'
import { ServoError } from '../lib/error.ts'
import { isObject } from '../lib/is-object.ts'
import { quoteName, quoteText } from '../lib/sql/sql-text.ts'
import { checkFile, checkStoredPath, MAX_HASHED_BYTES } from '../worker/values/stored-file.ts'
import { materializeCommand } from './materialize-command.ts'

/*
 * Assets as views: the data of their current materializations, with the partition as columns. Views are made of what the state says,
 * by SQL that `servo query` and `attach.sql` share.
 */

/** The tables of the state that say what is current. */
export const VIEW_TABLES = ['asset_definitions', 'partition_status', 'stored_values', 'dynamic_partitions'] as const

export const DEFINITIONS = 'SELECT asset_key, definition, renamed_from, removed FROM asset_definitions ORDER BY asset_key'

/** An asset that may be shown as a view. */
export interface ViewedAsset {
  readonly key: string
  /** Its name as a view. */
  readonly name: string
  /** The key, and the keys that it had before. */
  readonly recordedAs: readonly string[]
  /** How its values are stored: the ending of their files. */
  readonly ending: 'parquet' | 'json' | 'bin'
  readonly kind: string
  readonly dimensions: readonly Dimension[]
  /** The command that materializes it. */
  readonly command: string
}

interface Dimension {
  /** The name of its column. */
  readonly column: string
  /** Its value, in SQL over a row of `partition_status`. */
  readonly value: string
  /** SQL that is true for the keys that exist, as far as that is on record. */
  readonly exists: string | undefined
}

type Members = Readonly<Record<string, unknown>>

/** A row of `DEFINITIONS`. */
interface Defined {
  readonly key: string
  readonly definition: Members
  readonly formerKey: string | undefined
  readonly removed: boolean
}

const definedIn = ({ asset_key, definition, renamed_from, removed }: Members): Defined => ({
  key: String(asset_key),
  definition: membersOf(definition),
  formerKey: typeof renamed_from === 'string' ? renamed_from : undefined,
  removed: removed === true,
})

const membersOf = (value: unknown): Members => (isObject(value) ? value : {})

/**
 * The assets of a graph, from the rows of `DEFINITIONS`. A view is called as its asset. If a table of the state is called so, `asset/` comes
 * before it.
 */
export function viewedAssets(rows: readonly Members[], taken: readonly string[]): ViewedAsset[] {
  const defined = new Map(rows.map(definedIn).map((each) => [each.key, each]))
  const tables = new Set([...taken, DATA_TABLE].map((name) => name.toLowerCase()))
  const names = new Set(tables)
  const free = (name: string): string => (names.has(name.toLowerCase()) ? free(`asset/${name}`) : name)
  const alike = alikeKeys(rows)
  const present = [...defined.values()].filter(({ key, removed }) => !removed && !alike.has(key.toLowerCase()))
  // Assets that keep their name come first, so that none has to give way to a name that was made up.
  const [keeping, giving] = [false, true].map((isTaken) =>
    present.filter(({ key }) => tables.has(key.toLowerCase()) === isTaken),
  )
  return [...(keeping ?? []), ...(giving ?? [])].map(({ key, definition: { io, kind, partitions, inputs, deps } }) => {
    const name = free(key)
    names.add(name.toLowerCase())
    return {
      key,
      name,
      recordedAs: recordedAs(key, defined),
      ending: io === 'parquet' || io === 'json' ? io : 'bin',
      kind: String(kind),
      dimensions: dimensionsOf(partitions),
      command: materializeCommand({
        asset_key: key,
        inputs: membersOf(inputs),
        deps: Array.isArray(deps) ? deps : [],
        partitions,
      }),
    }
  })
}

/**
 * Keys that differ only in case, by how they read in lower case. SQL cannot distinguish them, so none of them is a view. A project with such keys is
 * refused; its state may be older than that rule.
 */
function alikeKeys(rows: readonly Members[]): Map<string, string[]> {
  const present = rows.map(definedIn).filter(({ removed }) => !removed)
  const byName = Map.groupBy(
    present.map(({ key }) => key),
    (key) => key.toLowerCase(),
  )
  return new Map([...byName].filter(([, keys]) => keys.length > 1))
}

/** As `keysOfAsset` has it, which follows the rows in memory. */
function recordedAs(key: string, defined: ReadonlyMap<string, Defined>): string[] {
  const keys = [key]
  for (let row = defined.get(key); row?.formerKey !== undefined; ) {
    const former = defined.get(row.formerKey)
    if (!former?.removed || keys.includes(former.key)) break
    keys.push(former.key)
    row = former
  }
  return keys
}

function dimensionsOf(partitions: unknown): Dimension[] {
  if (!isObject(partitions)) return []
  const { type, dimensions } = partitions
  if (type !== 'multi') return [{ column: 'partition', value: 'partition_key', exists: existing('partition_key', partitions) }]
  return Object.entries(membersOf(dimensions)).map(([name, definition]) => {
    const value = `partition_values[${quoteText(name)}]`
    return { column: `partition_${name}`, value, exists: existing(value, membersOf(definition)) }
  })
}

/** A key may have been taken out of its list or set after it was made. */
function existing(value: string, { type, keys, name }: Members): string | undefined {
  if (type === 'keys' && Array.isArray(keys)) return `${value} IN (${keys.map((key) => quoteText(String(key))).join(', ')})`
  if (type !== 'dynamic') return undefined
  return `${value} NOT IN (SELECT partition_key FROM dynamic_partitions WHERE set_name = ${quoteText(String(name))} AND NOT present)`
}

/** Where the data folder is, as text that goes before the path of a value: plainly, and as DuckDB wants it to be spelled. */
interface Place {
  readonly plain: string
  readonly spelled: string
}

/** When a partition was last made, in the order of the record. */
const MADE_IN = 'coalesce(s.last_materialization_order, s.last_materialization_at)'

/** Creates the table of the values behind these views, in files or as they are: those of the current materializations of the assets. */
function filesTable(assets: readonly ViewedAsset[], place: Place, temporary: '' | 'TEMP '): string {
  const newestFirst = `ORDER BY ${MADE_IN} DESC NULLS LAST, last_materialization_event_id DESC NULLS LAST`
  const known = assets.flatMap(({ key, recordedAs, ending }) =>
    recordedAs.map((recorded) => `(${[recorded, key, `.${ending}`].map(quoteText).join(', ')})`),
  )
  const impossible = assets.flatMap(({ key, dimensions }) => {
    const exists =
      dimensions.length === 0 ? [`partition_key = ''`] : [`partition_key <> ''`, ...dimensions.flatMap((d) => d.exists ?? [])]
    return `AND (asset_key <> ${quoteText(key)} OR (${exists.join(' AND ')}))`
  })
  return `CREATE OR REPLACE ${temporary}TABLE servo_data AS
WITH known(recorded_as, asset_key, ending) AS (VALUES ${known.length > 0 ? known.join(', ') : `(NULL, NULL, NULL)`}),
newest AS (
  SELECT known.asset_key, known.ending, s.partition_key, first(s.partition_values) AS partition_values, max(coalesce(s.wiped_order, s.wiped_at)) AS wiped_in,
    first({'asset_key': s.asset_key, 'path': s.last_materialization_path, 'id': s.last_materialization_id, 'made_in': ${MADE_IN}} ${newestFirst}) AS made
  FROM partition_status AS s JOIN known ON known.recorded_as = s.asset_key GROUP BY ALL
)
SELECT asset_key, partition_key, partition_values, made.id AS materialization_id, made.path AS path,
  ${quoteText(place.plain)} || made.path AS file, ${quoteText(place.spelled)} || made.path AS spelled, value, bytes, sha256
FROM newest LEFT JOIN (SELECT asset_key AS made_as, partition_key AS made_for, materialization_id AS made_by, value, bytes, sha256 FROM stored_values) AS v
  ON made_as = made.asset_key AND made_for = partition_key AND made_by = made.id
WHERE made.id <> '' AND (wiped_in IS NULL OR wiped_in < made.made_in)
  AND (ends_with(made.path, ending) AND regexp_full_match(made.path, ${quoteText(OUTPUT_PATH)}) OR ending = '.json' AND value IS NOT NULL)
  ${impossible.join('\n  ')};`
}

/** Random, because DuckDB refuses a file that has a column of this name. */
const FILE_COLUMN = 'servo file 0b9e4f7a62d1'
const FILE = quoteName(FILE_COLUMN)

/** The table of the values behind the views: no view can have its name. */
const DATA_TABLE = 'servo_data'

/** The variable that holds the files of one view. */
const variableOf = (number: number): string => `servo_data_${number}`

const filesVariable = ({ key }: ViewedAsset, number: number): string =>
  `SET VARIABLE ${variableOf(number)} = (SELECT list(spelled ORDER BY partition_key) FROM servo_data WHERE asset_key = ${quoteText(key)} AND spelled IS NOT NULL);`

/** Whether values of an asset are in files: SQL has no list of no files. */
type Kept = 'in files' | 'as they are'

/**
 * The data of an asset. Columns of partitions are last, as DuckDB has them for folders: if a table has a column of the same name,
 * that one keeps it.
 */
function assetQuery({ key, ending, dimensions }: ViewedAsset, number: number, kept: Kept): string {
  const files = `(SELECT * FROM servo_data WHERE asset_key = ${quoteText(key)})`
  const partition = dimensions.map(({ column, value }) => `, p.${value} AS ${quoteName(column)}`).join('')
  const list = `getvariable(${quoteText(variableOf(number))})`
  // The rows of partitions may have been written before a column was added, so columns are matched by name.
  const options = `union_by_name = true, hive_partitioning = false, filename = ${quoteText(FILE_COLUMN)}`
  if (ending === 'parquet')
    return `SELECT d.* EXCLUDE (${FILE})${partition} FROM read_parquet(${list}, ${options}) AS d JOIN ${files} AS p ON p.file = d.${FILE}`
  if (ending === 'json') {
    if (kept === 'as they are') return `SELECT ${jsonOf('p.value')} AS "value"${partition} FROM ${files} AS p`
    return `SELECT ${jsonOf('coalesce(p.value, d.content)')} AS "value"${partition} FROM ${files} AS p LEFT JOIN read_text(${list}) AS d ON p.file = d.filename`
  }
  return `SELECT p.file AS path${partition} FROM ${files} AS p`
}

/** JSON text as a value. read_text passes over a file that is gone, and a row less is a wrong answer; so is a value that was changed. */
const jsonOf = (text: string): string => `CASE WHEN ${text} IS NULL THEN error('IO Error: ' || p.file || ' is missing')
  WHEN sha256(${text}) <> p.sha256 THEN error('IO Error: ' || coalesce(p.path, p.materialization_id) || ' was changed after it was written') ELSE ${text} END::JSON`

/** An asset without files has none of its own columns: only a file knows them. */
const emptyQuery = ({ dimensions }: ViewedAsset): string =>
  `SELECT ${dimensions.length > 0 ? dimensions.map(({ column }) => `NULL::VARCHAR AS ${quoteName(column)}`).join(', ') : 'NULL AS "not materialized"'} WHERE false`

/**
 * SQL that makes views of these assets, for a DuckDB that stands in the folder of the workspace and has the tables of the state. It goes by the
 * state at the time it is run, but knows only these assets.
 */
export function attachAssets(assets: readonly ViewedAsset[]): string {
  if (assets.length === 0) return ''
  const views = assets.map((asset, number) => {
    const some = (column: string): string =>
      `SELECT count(${column}) > 0 FROM servo_data WHERE asset_key = ${quoteText(asset.key)}`
    const shown = asset.dimensions.length > 0 ? 'with its partition' : 'as a whole'
    return `-- ${asset.key}, ${shown}
${filesVariable(asset, number)}
SET VARIABLE servo_view_${number} = (SELECT CASE WHEN (${some('spelled')}) THEN ${quoteText(assetQuery(asset, number, 'in files'))} WHEN (${some('*')}) THEN ${quoteText(assetQuery(asset, number, 'as they are'))} ELSE ${quoteText(emptyQuery(asset))} END);
CREATE OR REPLACE TEMP VIEW ${quoteName(asset.name)} AS SELECT * FROM query(getvariable('servo_view_${number}'));
`
  })
  return `-- The data of assets: current materializations, with columns for the partition. servo_data lists the files.
${filesTable(assets, { plain: '', spelled: '' }, 'TEMP ')}

${views.join('\n')}`
}

interface Looking extends Place {
  /** The names of tables. */
  readonly taken: readonly string[]
  readonly fileOf: (path: string) => string
}

/** Makes views of the assets that a query names. */
export async function makeAssetViews(
  asked: ReadonlySet<string>,
  run: RunSql,
  { taken, fileOf, ...place }: Looking,
): Promise<MoreViews> {
  const definitions = await run(DEFINITIONS)
  for (const [name, keys] of alikeKeys(definitions)) if (asked.has(name)) throw ambiguousName(keys)
  const all = viewedAssets(definitions, taken)
  const wanted = all.filter(({ name }) => asked.has(name.toLowerCase()))
  const names = all.map(({ name }) => name)
  if (wanted.length === 0) return { names, folders: [], absent: new Map() }
  await run(filesTable(wanted, place, ''))
  const values = await run('SELECT asset_key, materialization_id, path, bytes, sha256 FROM servo_data')
  const owners = new Map(wanted.map((asset) => [asset.key, asset]))
  const made = new Map<string, Kept>()
  const compare = comparison()
  for (const { asset_key, materialization_id, path, bytes, sha256 } of values) {
    const key = String(asset_key)
    if (typeof path !== 'string') {
      if (!made.has(key)) made.set(key, 'as they are')
      continue
    }
    checkLies(owners.get(key), path, String(materialization_id))
    checkStoredPath(path, fileOf)
    if (owners.get(key)?.ending === 'parquet') await compare(fileOf(path), path, bytes, sha256)
    made.set(key, 'in files')
  }
  for (const [number, asset] of wanted.entries()) {
    const kept = made.get(asset.key)
    if (kept === undefined) continue
    await run(filesVariable(asset, number))
    await run(`CREATE VIEW ${quoteName(asset.name)} AS ${assetQuery(asset, number, kept)}`)
  }
  return {
    names,
    // The folders of these assets alone, under all names they have had.
    folders: wanted.flatMap(({ recordedAs }) =>
      recordedAs.flatMap((key) => [place.plain, place.spelled].map((start) => `${start}data/${key}/`)),
    ),
    absent: new Map(
      wanted.filter(({ key }) => !made.has(key)).map((asset) => [asset.name.toLowerCase(), nothingToShow(asset)]),
    ),
  }
}

/**
 * Compares files of tables with their records before a query reads them: their sizes, and their checksums as far as a query may wait for
 * that. What it does not see, `servo verify --data` does.
 */
function comparison(): (file: string, path: string, bytes: unknown, sha256: unknown) => Promise<void> {
  let left = MAX_HASHED_BYTES
  return async (file, path, size, checksum) => {
    // DuckDB says best what is wrong with a file that is not there.
    if (size == null || !existsSync(file)) return
    const bytes = Number(size)
    left -= bytes
    await checkFile(file, path, { bytes, ...(left >= 0 && typeof checksum === 'string' && { sha256: checksum }) })
  }
}

/** A ledger may hold reports of paths that were never checked. */
function checkLies(asset: ViewedAsset | undefined, path: string, id: string): void {
  if (asset?.recordedAs.some((key) => isPathOf(path, key, id))) return
  throw new ServoError('invalid', 'bad_stored_path', `${asset?.key} is said to lie at ${JSON.stringify(path.slice(0, 200))}`, {
    hint: `Nothing of it is kept there. Materialize ${asset?.key} again.`,
  })
}

const ambiguousName = (keys: readonly string[]): ServoError =>
  new ServoError('invalid', 'ambiguous_name', `${keys.join(' and ')} differ only in case, which SQL ignores`, {
    hint: 'Rename one of the assets, or use servo show.',
  })

function nothingToShow({ key, kind, command }: ViewedAsset): ServoError {
  const why =
    kind === 'source'
      ? `${key} is a source: Servo stores none of its data`
      : `${key} has nothing to show: it was never materialized, was wiped, or keeps its own data`
  return new ServoError('not_found', 'no_value', why, {
    hint: kind === 'source' ? 'Query what is made from it.' : `Materialize it: ${command}`,
  })
}
