import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { BASE } from '../../../src/api/routing/route.ts'
import { Led } from '../led.ts'

const ENTRIES = path.resolve(import.meta.dirname, '../../../src/api/routing/every-route.test.ts')

test('[U1] every route of a whole server has an entry in the test that calls each with every kind of token, and needs what that says', async () => {
  const led = await Led.open({ assets: [] })
  const [, text = ''] = /const entries: [^=]*= (\{[\s\S]*?\n\})/.exec(fs.readFileSync(ENTRIES, 'utf8')) ?? []
  const entered = [...text.matchAll(/^ {2}(\w+): (?:`([^`]*)`|'([^']*)')/gm)].flatMap(([, need, many, one]) =>
    (many ?? one ?? '')
      .trim()
      .split(/\n\s*/)
      .map((line) => `${line} ${need}`),
  )
  const served = led.server.routes.map(({ method, path: at, needs }) => `${method} ${at.replace(BASE, '~')} ${needs}`)
  expect(served.toSorted()).toEqual(entered.toSorted())
})

test('[U2] a whole server lets nobody in without a token, or with one that it did not make', async () => {
  const led = await Led.open({ assets: [] })
  const open: string[] = []
  for (const { method, path: at } of led.server.routes)
    for (const token of [undefined, 'wrong', `servo_${'a'.repeat(16)}_${'A'.repeat(43)}`]) {
      const headers = {
        host: '127.0.0.1:4400',
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      }
      const url = `http://127.0.0.1:4400${at.replace('/why/:kind', '/why/run').replace(/:\w+/g, 'x')}`
      const asked = led.server.fetch(new Request(url, { method, headers }))
      // An unknown token waits for the next look at the files.
      await led.clock.advance(500)
      const { status } = await asked
      if (![401, 403].includes(status)) open.push(`${method} ${at.replace(BASE, '~')}`)
    }
  // Signing in without a token is refused by the route itself; no sensor is at the addresses for messages.
  expect([...new Set(open)].toSorted()).toEqual([
    'GET /api/v1/docs',
    'GET /api/v1/openapi.json',
    'GET /health/live',
    'GET /health/ready',
    'GET /login',
    'OPTIONS /hooks/:tenant/:workspace/:path',
    'POST /auth/logout',
    'POST /hooks/:tenant/:workspace/:path',
    'POST /pubsub/:tenant/:workspace/:sensor',
  ])
})
