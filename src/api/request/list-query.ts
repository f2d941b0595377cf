import { z } from 'zod'
import { timestamp } from '../../model/envelope.ts'

/** What every list takes. */
export const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50).describe('How many entries a page has at most.'),
  cursor: z.string().max(2_048).optional().describe('The `next_cursor` of the page before.'),
})
export type PageQuery = z.infer<typeof listQuery>

/** What a list of things that happened takes besides; the verb says when each happened. */
export const whenQuery = (happened: string) => ({
  since: timestamp.optional().describe(`Only what was ${happened} at this moment or later.`),
  until: timestamp.optional().describe(`Only what was ${happened} before this moment.`),
})

/** Which assets are meant. It may be repeated, so handlers read all of it. */
export const selectQuery = z.object({
  select: z
    .string()
    .min(1)
    .max(4_096)
    .optional()
    .meta({ description: 'Assets: a key or a selection expression. May be repeated; all assets when absent.', repeated: true }),
})
