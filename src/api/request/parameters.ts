import type { MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import { findTargetHandler } from 'hono/utils/handler'
import type { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { withRequestId } from './request-id.ts'

/** The names of the parameters that a route declares with `takes`. */
const declared = new WeakMap<object, readonly string[]>()

/** Declares the query parameters of a route; its handler finds them checked in `c.var.query`. A route without this takes none. */
export function takes<Q>(schema: z.ZodObject & z.ZodType<Q>): MiddlewareHandler<{ Variables: { query: Q } }> {
  const read: MiddlewareHandler<{ Variables: { query: Q } }> = async (c, next) => {
    c.set('query', readQuery(schema, withRequestId(c.req.raw, c.req.query(), schema)))
    await next()
  }
  const names = Object.keys(schema.shape)
  declared.set(read, names.includes('request_id') ? [...names, 'client_request_id'] : names)
  return read
}

/** The query of a request, checked; the first thing wrong with it is named. */
function readQuery<T>(schema: z.ZodType<T>, query: unknown): T {
  const parsed = schema.safeParse(query)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_query', `${field}: ${issue?.message}`, { facts: { field } })
}

/** Refuses a query parameter that the route does not declare: a misspelt filter would be ignored, and the answer would be to another question. */
export const refuseUnknownParameters: MiddlewareHandler = async (c, next) => {
  const matched = matchedRoutes(c)
  // Of several routes that match, such as `/assets/graph` and `/assets/:key`, the first one answers.
  const route = matched.find(({ method }) => method !== 'ALL')
  if (route !== undefined) {
    const its = matched.filter(({ path, method }) => path === route.path && method === route.method)
    const known = its.flatMap(({ handler }) => declared.get(findTargetHandler(handler)) ?? [])
    const unknown = Object.keys(c.req.query()).find((name) => !known.includes(name))
    if (unknown !== undefined) throw unknownParameter(unknown, known)
  }
  await next()
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
