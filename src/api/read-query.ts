import type { z } from 'zod'
import { ServoError } from '../lib/error.ts'

/** The query of a request, checked; the first thing wrong with it is named. */
export function readQuery<T>(schema: z.ZodType<T>, query: unknown): T {
  const parsed = schema.safeParse(query)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_query', `${field}: ${issue?.message}`, { facts: { field } })
}
