import { z } from 'zod'
import type { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { taskStates } from '../../domain/tasks/tasks.table.ts'
import { id } from '../../model/envelope.ts'
import type { QueryAnswer } from '../query/query-contract.ts'
import type { LogQuery, RunLogEntry, WireAttempt, WireTask } from '../run-contract.ts'
import type { WireRow } from '../wire-row.ts'

const page = {
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
}
const flag = z.stringbool({ truthy: ['true'], falsy: ['false'] })

export const taskQuery = z.object({ state: z.enum(taskStates).optional(), asset: id.optional(), ...page })
export type TaskQuery = z.infer<typeof taskQuery>

export const logQuery = z.object({
  task: z.string().max(512).optional(),
  attempt: z.coerce.number().int().min(1).optional(),
  /** With one of these the answer is a page; without, it is everything, a line each. */
  limit: page.limit.unwrap().optional(),
  cursor: page.cursor,
  /** True for what is printed from now on too, until the run is over. */
  follow: flag.optional(),
})

export const definitionQuery = z.object({ select: z.string().optional(), ...page })
export const dataQuery = z.object({ partition: id.optional(), ...page })
export type DataQuery = z.infer<typeof dataQuery>

export interface TaskPage {
  /** By their keys. */
  readonly tasks: readonly WireTask[]
  readonly next_cursor: string | null
}

export interface TaskDetail {
  readonly task: WireTask
  /** In their order, each with its error, its output and the results of its checks. */
  readonly attempts: readonly WireAttempt[]
}

export interface LogPage {
  /** The output of one attempt after the other, in the order in which they began. */
  readonly entries: readonly RunLogEntry[]
  readonly next_cursor: string | null
}

export type WireDefinition = WireRow<typeof assetDefinitions>

export interface DefinitionPage {
  /** By their keys. */
  readonly definitions: readonly WireDefinition[]
  /** The version of the graph. */
  readonly graph_version: string | null
  readonly next_cursor: string | null
}

export interface DataPage extends QueryAnswer {
  readonly asset_key: string
  readonly next_cursor: string | null
}

/** Questions about the parts of runs and assets. */
export interface DetailApi {
  tasks(runId: string, query: TaskQuery): Promise<TaskPage>
  task(runId: string, taskKey: string): Promise<TaskDetail>
  logs(runId: string, query: LogQuery & { limit: number; cursor?: string | undefined }): Promise<LogPage>
  definitions(query: { select: readonly string[]; limit: number; cursor?: string | undefined }): Promise<DefinitionPage>
  definition(assetKey: string): Promise<WireDefinition>
  /** Rows of the current materializations of an asset. */
  data(assetKey: string, query: DataQuery): Promise<DataPage>
}
