import type { MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'

const templates = new WeakMap<Request, string>()

/** Notes by which route a request is answered. Comes first, so that it also sees those that are refused on the way. */
export const noteRoute: MiddlewareHandler = async (c, next) => {
  // What is asked on the way to a route has no method of its own.
  const route = matchedRoutes(c).findLast(({ method }) => method !== 'ALL')
  if (route !== undefined) templates.set(c.req.raw, route.path)
  await next()
}

/** The template of the route of a request, such as `/api/v1/orchestration/runs/:run_id`; `none` for one that no route answers. */
export const routeOf = (request: Request): string => templates.get(request) ?? 'none'
