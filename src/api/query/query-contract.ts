import { z } from 'zod'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

/** More text than anybody writes; it is parsed several times. */
const MAX_SQL = 64 << 10

export const queryBody = z.object({
  /** One SELECT over the tables of the state and the assets of the project. */
  sql: z.string().min(1).max(MAX_SQL),
  /** At most so many rows. */
  limit: z.number().int().min(1).max(10_000).default(1_000),
  /** A query that takes longer is ended. */
  timeout_ms: z
    .number()
    .int()
    .min(1)
    .max(MINUTE_MS)
    .default(10 * SECOND_MS),
})
export type QueryBody = z.infer<typeof queryBody>

export const queryAnswer = z.object({
  columns: z.array(z.object({ name: z.string(), type: z.string() }).readonly()).readonly(),
  /** A value for each column. */
  rows: z.array(z.array(z.json())),
  /** True if there are more rows than these. */
  truncated: z.boolean(),
})
export type QueryAnswer = z.infer<typeof queryAnswer>

/** Read-only SQL. */
export interface QueryApi {
  ask(query: QueryBody): Promise<QueryAnswer>
}
