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
export function checkedQuery(
  request: Request,
  query: Readonly<Record<string, string>>,
  schema: z.ZodObject | undefined,
): { readonly query: unknown; readonly requestId: string | undefined } {
  const known = parametersOf(schema)
  const unknown = Object.keys(query).find((name) => !known.includes(name))
  if (unknown !== undefined) throw unknownParameter(unknown, known)
  if (schema === undefined) return { query: undefined, requestId: undefined }
  const isKeyed = known.includes('request_id')
  const { said, requestId } = isKeyed ? withRequestId(request, query, schema) : { said: query, requestId: undefined }
  const parsed = schema.safeParse(said)
  if (parsed.success) return { query: parsed.data, requestId }
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
