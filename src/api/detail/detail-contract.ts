import { z } from 'zod'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { taskStates } from '../../domain/tasks/tasks.table.ts'
import { id } from '../../model/envelope.ts'
import { rowSchema } from '../answers/row-schema.ts'
import { anything, named, nextCursor, type Told } from '../answers/told.ts'
import { queryAnswer } from '../query/query-contract.ts'
import { listQuery, type PageQuery, selectQuery } from '../request/list-query.ts'
import { type LogQuery, logQuery, runLogEntry, wireAttempt, wireTask } from '../run-contract.ts'

export const taskQuery = listQuery.extend({
  status: z.enum(taskStates).optional().describe('Only tasks in this state.'),
  asset: id.optional().describe('Only tasks of this asset.'),
})
export type TaskQuery = Told<typeof taskQuery>

/** With `limit` or `cursor` the answer is a page; without, it is everything, a line each. */
export const logPageQuery = listQuery.extend({
  ...logQuery.shape,
  follow: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .optional()
    .describe('True for what is printed from now on too, until the run is over.'),
})
export type LogPageQuery = LogQuery & PageQuery

export const definitionQuery = listQuery.extend(selectQuery.shape)
export const dataQuery = listQuery.extend({ partition: id.optional().describe('Only rows of this partition.') })
export type DataQuery = Told<typeof dataQuery>

export const taskPage = named('TaskPage', z.object({ tasks: z.array(wireTask).describe('By their keys.'), ...nextCursor }))
export type TaskPage = Told<typeof taskPage>

export const taskDetail = named(
  'TaskDetail',
  z.object({
    task: wireTask,
    attempts: z.array(wireAttempt).describe('In their order, each with its error, its output and the results of its checks.'),
  }),
)
export type TaskDetail = Told<typeof taskDetail>

export const logPage = named(
  'LogPage',
  z.object({
    entries: z.array(runLogEntry).describe('The output of one attempt after the other, in the order in which they began.'),
    ...nextCursor,
  }),
)
export type LogPage = Told<typeof logPage>

export const wireDefinition = named('Definition', rowSchema(assetDefinitions, { definition: anything }))
export type WireDefinition = Told<typeof wireDefinition>

export const definitionPage = named(
  'DefinitionPage',
  z.object({
    definitions: z.array(wireDefinition).describe('By their keys.'),
    graph_version: z.string().nullable().describe('The version of the graph.'),
    ...nextCursor,
  }),
)
export type DefinitionPage = Told<typeof definitionPage>

export const dataPage = named('DataPage', queryAnswer.extend({ asset_key: z.string(), ...nextCursor }))
export type DataPage = Told<typeof dataPage>

/** Questions about the parts of runs and assets. */
export interface DetailApi {
  tasks(runId: string, query: TaskQuery): Promise<TaskPage>
  task(runId: string, taskKey: string): Promise<TaskDetail>
  logs(runId: string, query: LogPageQuery): Promise<LogPage>
  definitions(query: PageQuery & { readonly select: readonly string[] }): Promise<DefinitionPage>
  definition(assetKey: string): Promise<WireDefinition>
  /** Rows of the current materializations of an asset. */
  data(assetKey: string, query: DataQuery): Promise<DataPage>
}
