import type { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { withRequestId } from './request-id.ts'

/** The names of the parameters that a route takes. */
function parametersOf(schema: z.ZodObject | undefined): readonly string[] {
  const names = Object.keys(schema?.shape ?? {})
  return names.includes('request_id') ? [...names, 'client_request_id'] : names
}

/**
 * The query of a request, checked; the first thing wrong with it is named. A parameter that the route does not declare is refused: a
 * misspelt filter would be ignored, and the answer would be to another question.
 */
export function checkedQuery(request: Request, query: Record<string, string>, schema: z.ZodObject | undefined): unknown {
  const known = parametersOf(schema)
  const unknown = Object.keys(query).find((name) => !known.includes(name))
  if (unknown !== undefined) throw unknownParameter(unknown, known)
  if (schema === undefined) return undefined
  const parsed = schema.safeParse(withRequestId(request, query, schema))
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_query', `${field}: ${issue?.message}`, { facts: { field } })
}

function unknownParameter(name: string, known: readonly string[]): ServoError {
  const field = name.slice(0, 60)
  const meant = nearest(field, known)
  const suggestion = meant === undefined ? '' : ` Did you mean \`${meant}\`?`
  return new ServoError('invalid', 'bad_query', `Unknown parameter \`${field}\`.${suggestion}`, {
    hint: known.length === 0 ? 'This route takes no parameters.' : `This route takes ${known.join(', ')}.`,
    facts: { field },
  })
}
