import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type AppOptions, routesOf } from './app.ts'
import { hookRoutes } from './hooks/hook-routes.ts'
import { loginRoutes } from './login/login-routes.ts'
import { probeRoutes } from './probes/probe-routes.ts'
import { BASE } from './routing/route.ts'
import { workerRoutes } from './worker-routes.ts'

const nothing = {} as never
const services = {} as AppOptions
/** A page tells what is sent to a server; senders that ask first need not be told. */
const routes = routesOf({
  ...services,
  workers: workerRoutes(nothing),
  hooks: hookRoutes(nothing),
  probes: probeRoutes(nothing),
  login: loginRoutes(nothing),
}).filter(({ method }) => method !== 'OPTIONS')

/** What the second column of a table says. */
const inWords: Readonly<Record<string, string>> = { signature: 'a signature', task_token: 'the task token' }

test('docs/api.md has every route of a server with what it needs, and no other', () => {
  const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/api.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)` \| ([^|]*) \|/gm)]
  const documented = rows.map(([, route = '', needs]) => `${route.replace(/\{\w+\}/g, '{}')} needs ${needs}`)
  const declared = routes.map(({ method, path: at, needs }) => {
    const route = at.replace(BASE, '').replace(/:\w+/g, '{}')
    return `${method} ${route} needs ${inWords[needs] ?? needs}`
  })
  expect(documented.toSorted()).toEqual(declared.toSorted())
})
