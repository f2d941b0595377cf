import { z } from 'zod'
import { SECOND_MS } from '../../lib/time.ts'
import { isUlid } from '../../lib/ulid.ts'

/** Parameters of every read: how much of what happened its answer must show. The router takes them out before the route looks. */
export const readParameters = z.object({
  wait_for_event_id: z
    .string()
    .refine(isUlid, 'must be the id of an event, such as an accepted_event_id')
    .optional()
    .describe('The `accepted_event_id` of a change: the answer shows that change, and everything before it.'),
  timeout_ms: z.coerce
    .number()
    .int()
    .min(0)
    .max(30 * SECOND_MS)
    .default(5 * SECOND_MS)
    .describe('How long to wait for that.'),
  fresh: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .default(false)
    .describe('True if the answer shall show everything that was recorded before the request came.'),
})
export type ReadParameters = z.infer<typeof readParameters>

/** What answers are made of: rows in memory, which are ahead, or the tables that were published from them. */
export type ReadFrom = 'memory' | 'tables'

/** Lets a read wait until it shows what the caller knows to have happened. */
export interface Reads {
  /** Resolves when an answer shows what is asked for. Throws `not_visible_yet` when the time is over. */
  shows(asked: ReadParameters, from: ReadFrom): Promise<void>
}

const names: readonly string[] = Object.keys(readParameters.shape)

/** The parameters of a read, and those of its route. */
export function takeReadParameters(query: Readonly<Record<string, string>>): {
  readonly reading: Readonly<Record<string, string>>
  readonly rest: Readonly<Record<string, string>>
} {
  const [reading, rest]: Record<string, string>[] = [{}, {}]
  for (const [name, value] of Object.entries(query)) (names.includes(name) ? reading : rest)![name] = value
  return { reading: reading ?? {}, rest: rest ?? {} }
}
