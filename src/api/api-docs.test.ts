import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { type AppOptions, localApp } from './app.ts'
import { hookRoutes } from './hooks/hook-routes.ts'
import { type WorkerRoutesOptions, workerRoutes } from './worker-routes.ts'

const BASE = '/api/v1/orchestration'

/** The routes of a server, written as the page writes them: without the base, and `{key}` for a part that varies. */
function routes(): string[] {
  const nothing = {} as never
  const workers = workerRoutes(nothing satisfies WorkerRoutesOptions)
  const options: AppOptions = {
    runs: nothing,
    statuses: nothing,
    assets: nothing,
    schedules: nothing,
    sensors: nothing,
    backfills: nothing,
    whys: nothing,
    retention: nothing,
    token: 'secret',
    hosts: [],
    instance: 'one',
    handOver: () => undefined,
    workers,
    hooks: hookRoutes(nothing),
  }
  const handlers = localApp(options).routes.filter(({ method }) => method !== 'ALL')
  return handlers.map(({ method, path }) => `${method} ${path.replace(BASE, '').replace(/:\w+/g, '{}')}`)
}

test('docs/api.md has every route of a server, and no other', () => {
  const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/api.md'), 'utf8')
  const documented = [...page.matchAll(/^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)` \|/gm)].map(([, route = '']) =>
    route.replace(/\{\w+\}/g, '{}'),
  )
  expect(documented.toSorted()).toEqual([...new Set(routes())].toSorted())
})
