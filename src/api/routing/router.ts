import { type Context, Hono } from 'hono'
import { ServoError } from '../../lib/error.ts'
import { type Access, NO_ACCESS } from '../access/access.ts'
import { connectionOf } from '../access/connection.ts'
import type { RequestLimits, Weight } from '../limits/limits.ts'
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
  readonly onFailed?: (error: unknown, route: string, request: Request) => void
  /** How much is taken on at a time; anything if absent. */
  readonly limits?: RequestLimits | undefined
}

/** Answers of these kinds are sent bit by bit. */
const STREAMS = ['application/x-ndjson', 'text/event-stream']

/** Adds declared routes, the only kind there is. Other methods of their paths are refused with the ones that exist. */
export function addRoutes(app: Hono, routes: readonly Route[], { onFailed, limits, ...given }: RouterOptions = {}): void {
  // Nobody gets in unless somebody decides who may.
  const { access = NO_ACCESS, checksAnswers = inTests() } = given
  const served = { ...given, access: limits?.limited(access) ?? access, checksAnswers }
  for (const each of routes) {
    const { method, path, serve, needs } = each
    const weight = weightOf(each)
    app.on(method, path, async (c) => {
      let leave: (() => void) | undefined
      try {
        if (needs === 'nothing' && weight !== 'nothing') limits?.open(c.req.raw)
        leave = limits?.enter(weight)
        const answered = await serve(c, served)
        if (limits !== undefined && isStream(answered)) await countStream(limits, c, answered)
        return answered
      } catch (error) {
        onFailed?.(error, `${method} ${path}`, c.req.raw)
        throw error
      } finally {
        leave?.()
      }
    })
  }
  const patterns = routes.map(({ method, path }) => ({ method, pattern: patternOf(path) }))
  // After all of them: `GET /schedules/catchup` is a schedule of this name, although the path itself takes only POST.
  for (const path of new Set(routes.map((each) => each.path)))
    app.all(path, (c) => {
      const there = patterns.filter(({ pattern }) => pattern.test(c.req.path)).map(({ method }) => method)
      return notAllowed(c.req.method, [...new Set(there)])
    })
}

/** Whether a server is there must be answered however much it has to do. */
const weightOf = ({ path, waits }: Route): Weight => (path.startsWith('/health/') ? 'nothing' : waits ? 'wait' : 'request')

const isStream = ({ headers }: Response): boolean => {
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  return STREAMS.includes(type)
}

async function countStream(limits: RequestLimits, c: Context, { body }: Response): Promise<void> {
  try {
    limits.stream(connectionOf(c).outgoing)
  } catch (error) {
    await body?.cancel()
    throw error
  }
}

/** A router of these routes alone. */
export function routerOf(routes: readonly Route[], access: Access): Hono {
  const app = emptyRouter()
  addRoutes(app, routes, { access })
  return app
}

/** Set by the configuration of the tests, for processes that they start too. */
const inTests = (): boolean => process.env['SERVO_CHECK_ANSWERS'] === '1'

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
