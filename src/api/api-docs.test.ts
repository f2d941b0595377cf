import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { everyRoute } from '../../scripts/reference/openapi.ts'
import { BASE } from './routing/route.ts'

/** A page tells what is sent to a server; senders that ask first need not be told. */
const routes = everyRoute().filter(({ method }) => method !== 'OPTIONS')

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
