import { Hono } from 'hono'
import { ServoError } from '../../lib/error.ts'
import { type Access, NO_ACCESS } from '../access/access.ts'
import { problemResponse } from '../problem.ts'
import type { Route, Served } from './route.ts'

/** A router without routes: whatever is not declared is not found. */
export function emptyRouter(): Hono {
  const app = new Hono()
  app.onError((error) => problemResponse(error))
  app.notFound((c) =>
    problemResponse(new ServoError('not_found', 'no_such_route', `route ${c.req.method} ${c.req.path} not found`)),
  )
  return app
}

export interface RouterOptions extends Partial<Served> {
  /** Called with the error of a call that failed, and the method and path that its route declares. */
  readonly onFailed?: (error: unknown, route: string) => void
}

/** Adds declared routes, the only kind there is. Other methods of their paths are refused with the ones that exist. */
export function addRoutes(app: Hono, routes: readonly Route[], { onFailed, ...given }: RouterOptions = {}): void {
  // Nobody gets in unless somebody decides who may.
  const served = { access: NO_ACCESS, ...given }
  for (const { method, path, serve } of routes)
    app.on(method, path, async (c) => {
      try {
        return await serve(c, served)
      } catch (error) {
        onFailed?.(error, `${method} ${path}`)
        throw error
      }
    })
  const patterns = routes.map(({ method, path }) => ({ method, pattern: patternOf(path) }))
  // After all of them: `GET /schedules/catchup` is a schedule of this name, although the path itself takes only POST.
  for (const path of new Set(routes.map((each) => each.path)))
    app.all(path, (c) => {
      const there = patterns.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method)
      return notAllowed(c.req.method, [...new Set(there)])
    })
}

/** A router of these routes alone. */
export function routerOf(routes: readonly Route[], access: Access): Hono {
  const app = emptyRouter()
  addRoutes(app, routes, { access })
  return app
}

const patternOf = (path: string): RegExp => new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`)

function notAllowed(method: string, there: readonly string[]): Response {
  // Whatever answers GET answers HEAD.
  const allowed = (there.includes('GET') ? ['HEAD', ...there] : [...there]).sort().join(', ')
  const problem = new ServoError('invalid', 'method_not_allowed', `${method.slice(0, 20)} is not supported here`, {
    hint: `Use ${allowed.replace(/, ([^,]+)$/, ' or $1')}.`,
  })
  const response = problemResponse(problem)
  response.headers.set('allow', allowed)
  return response
}
