import { z } from 'zod'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { named, type Told } from '../answers/told.ts'

/** More text than anybody writes; it is parsed several times. */
const MAX_SQL = 64 << 10

export const queryBody = z.object({
  sql: z.string().min(1).max(MAX_SQL).describe('One SELECT over the tables of the state and the assets of the project.'),
  limit: z.number().int().min(1).max(10_000).default(1_000).describe('At most so many rows.'),
  timeout_ms: z
    .number()
    .int()
    .min(1)
    .max(MINUTE_MS)
    .default(10 * SECOND_MS)
    .describe('A query that takes longer is ended.'),
})
export type QueryBody = z.infer<typeof queryBody>
/** As callers write it: the server has the rest. */
export type NewQuery = z.input<typeof queryBody>

export const queryAnswer = named(
  'QueryAnswer',
  z.object({
    columns: z.array(z.object({ name: z.string(), type: z.string() })),
    rows: z.array(z.array(z.unknown())).describe('A value for each column.'),
    truncated: z.boolean().describe('True if there are more rows than these.'),
  }),
)
export type QueryAnswer = Omit<Told<typeof queryAnswer>, 'rows'> & { readonly rows: z.core.util.JSONType[][] }

/** Read-only SQL. */
export interface QueryApi {
  ask(query: QueryBody): Promise<QueryAnswer>
}
