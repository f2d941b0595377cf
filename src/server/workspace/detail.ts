import type {
  DataPage,
  DataQuery,
  DefinitionPage,
  DetailApi,
  LogPage,
  LogPageQuery,
  TaskDetail,
  TaskPage,
  TaskQuery,
  WireDefinition,
} from '../../api/detail/detail-contract.ts'
import type { QueryApi } from '../../api/query/query-contract.ts'
import type { PageQuery } from '../../api/request/list-query.ts'
import { wireRow } from '../../api/wire-row.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { orchestration } from '../../domain/index.ts'
import { knownAsset, selectedAssets } from '../../domain/selection/selected-assets.ts'
import { allTables } from '../../engine/fold/state.ts'
import { ServoError } from '../../lib/error.ts'
import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import { readKey } from '../../partitions/key.ts'
import { viewedAssets } from '../asset-views.ts'
import type { Knowledge } from './knowledge.ts'
import { badCursor, pageOf } from './page.ts'
import { unknownTask } from './run-stream.ts'
import type { Runs } from './runs.ts'

const TABLES = allTables(orchestration).map(({ name }) => name)

/** Answers questions about the parts of runs and assets. */
export class Detail implements DetailApi {
  readonly #known: Knowledge
  readonly #runs: Pick<Runs, 'get' | 'logPage'>
  readonly #query: QueryApi

  constructor(known: Knowledge, runs: Pick<Runs, 'get' | 'logPage'>, query: QueryApi) {
    this.#known = known
    this.#runs = runs
    this.#query = query
  }

  async tasks(runId: string, { status, asset, ...page }: TaskQuery): Promise<TaskPage> {
    const { tasks } = await this.#runs.get(runId)
    const wanted = tasks.filter(
      (task) => (status === undefined || task.state === status) && (asset === undefined || task.asset_key === asset),
    )
    const byKey = new Map(wanted.map((task) => [task.task_key, task]))
    const { names, next_cursor } = pageOf([...byKey.keys()].sort(), page)
    return { tasks: names.flatMap((name) => byKey.get(name) ?? []), next_cursor }
  }

  async task(runId: string, taskKey: string): Promise<TaskDetail> {
    const { run, tasks, attempts } = await this.#runs.get(runId)
    const task = tasks.find(({ task_key }) => task_key === taskKey)
    if (task === undefined) throw unknownTask(run.run_id, taskKey, tasks)
    const its = attempts.filter(({ task_key }) => task_key === taskKey)
    return { task, attempts: its.toSorted((a, b) => a.attempt - b.attempt) }
  }

  async logs(runId: string, query: LogPageQuery): Promise<LogPage> {
    return await this.#runs.logPage(runId, query)
  }

  async definitions(query: PageQuery & { readonly select: readonly string[] }): Promise<DefinitionPage> {
    const { graph, version } = this.#known.graph.get()
    const { names, next_cursor } = pageOf(selectedAssets(graph, query.select).toSorted(), query)
    return { definitions: names.flatMap((name) => this.#definition(name) ?? []), graph_version: version, next_cursor }
  }

  async definition(assetKey: string): Promise<WireDefinition> {
    knownAsset(this.#known.graph.get().graph, assetKey)
    const found = this.#definition(assetKey)
    if (found !== undefined) return found
    throw new ServoError('not_found', 'no_such_asset', `asset ${JSON.stringify(assetKey.slice(0, 120))} not found`, {
      hint: '`servo assets` lists the assets.',
    })
  }

  #definition(assetKey: string): WireDefinition | undefined {
    const row = this.#known.rows().hot(assetDefinitions).get(assetKey)
    return row && wireRow(assetDefinitions, row)
  }

  /** Rows as the views of assets have them, those of the partition last. They are read in another process: a value may be large. */
  async data(assetKey: string, { partition, limit, cursor }: DataQuery): Promise<DataPage> {
    knownAsset(this.#known.graph.get().graph, assetKey)
    const rows = [...this.#known.rows().hot(assetDefinitions).all()]
    const view = viewedAssets(rows, TABLES).find(({ key }) => key === assetKey)
    const name = quoteName(view?.name ?? assetKey)
    const from = cursor === undefined ? 0 : offsetIn(cursor)
    const where = partition === undefined ? '' : await this.#where(name, view?.dimensions.length ?? 0, assetKey, partition)
    // Without an order two pages may have the same row, and another may be on none. Rows that are equal may change places: nobody can tell.
    const sql = `SELECT * FROM ${name}${where} ORDER BY ALL LIMIT ${limit + 1} OFFSET ${from}`
    const answer = await this.#query.ask({ sql, limit, timeout_ms: DATA_TIMEOUT_MS })
    const next = from + answer.rows.length
    // A single row that is larger than an answer may be would be asked for again and again.
    const isMore = answer.truncated && answer.rows.length > 0
    return { asset_key: assetKey, ...answer, next_cursor: isMore ? Buffer.from(String(next)).toString('base64url') : null }
  }

  /** A table may have a column of the same name, so the columns of the partition are known by their place: they are last. */
  async #where(name: string, dimensions: number, assetKey: string, partition: string): Promise<string> {
    if (dimensions === 0)
      throw new ServoError('invalid', 'no_partitions', `${assetKey} has no partitions`, { facts: { field: 'partition' } })
    const { columns } = await this.#query.ask({ sql: `SELECT * FROM ${name} LIMIT 0`, limit: 1, timeout_ms: DATA_TIMEOUT_MS })
    const its = columns.slice(-dimensions).map((column) => column.name)
    const values = dimensions === 1 && its[0] !== undefined ? [partition] : valuesOf(partition, its)
    return ` WHERE ${its.map((column, i) => `${quoteName(column)} = ${quoteText(values[i] ?? '')}`).join(' AND ')}`
  }
}

const DATA_TIMEOUT_MS = 30_000

/** The values of a key of several dimensions, in the order of the columns `partition_<dimension>`. */
function valuesOf(partition: string, columns: readonly string[]): string[] {
  const values: Readonly<Record<string, string>> = readKey(partition)
  return columns.map(
    (column) => values[column.replace(/^partition_/, '')] ?? values[column.replace(/^partition_|_\d+$/g, '')] ?? '',
  )
}

function offsetIn(cursor: string): number {
  const offset = Number(Buffer.from(cursor, 'base64url').toString())
  if (Number.isSafeInteger(offset) && offset >= 0 && Buffer.from(String(offset)).toString('base64url') === cursor) return offset
  throw badCursor()
}
