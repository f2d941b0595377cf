import type { z } from 'zod'
import { ServoError } from '../lib/error.ts'

/** What stands behind the question mark of an address, or an error that names what is wrong in it. */
export function parseQuery<T>(schema: z.ZodType<T>, query: Record<string, string>): T {
  const parsed = schema.safeParse(query)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_query', `${field}: ${issue?.message}`, { facts: { field } })
}
