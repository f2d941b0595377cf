import { type AppOptions, routesOf } from '../../src/api/app.ts'
import { hookRoutes } from '../../src/api/hooks/hook-routes.ts'
import { loginRoutes } from '../../src/api/login/login-routes.ts'
import { openApiOf } from '../../src/api/openapi/document.ts'
import { probeRoutes } from '../../src/api/probes/probe-routes.ts'
import type { Route } from '../../src/api/routing/route.ts'
import { workerRoutes } from '../../src/api/worker-routes.ts'

const nothing = {} as never
const services = {} as AppOptions

/** Every route of a server, with nothing behind it: what routes declare can be read without. */
export const everyRoute = (): Route[] =>
  routesOf({
    ...services,
    workers: workerRoutes(nothing),
    hooks: hookRoutes(nothing),
    probes: probeRoutes(nothing),
    login: loginRoutes(nothing),
  })

/** The text of docs/openapi.json. */
export const openApiText = (): string => `${JSON.stringify(openApiOf(everyRoute()), null, 1)}\n`
