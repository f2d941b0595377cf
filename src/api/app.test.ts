import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { serve } from '@hono/node-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ServoClient } from '../client/client.ts'
import { ServoError } from '../lib/error.ts'
import { machineAccess } from '../testing/access/machine-access.ts'
import { type AppOptions, localApp } from './app.ts'

const MB = 2 ** 20
const runs = '/api/v1/orchestration/runs'

/** A server on a port of its own that answers what the test says, and the bytes it has taken in. */
async function start(list: () => Promise<never[]> = async () => []) {
  const page = async () => ({ runs: await list(), next_cursor: null })
  const app = localApp({
    runs: { page, request: async () => ({ run_id: 'r1' }) } as unknown as AppOptions['runs'],
    statuses: {} as AppOptions['statuses'],
    assets: {} as AppOptions['assets'],
    schedules: {} as AppOptions['schedules'],
    sensors: {} as AppOptions['sensors'],
    backfills: {} as AppOptions['backfills'],
    whys: {} as AppOptions['whys'],
    retention: {} as AppOptions['retention'],
    alerts: {} as AppOptions['alerts'],
    tokens: {} as AppOptions['tokens'],
    access: machineAccess('secret'),
    own: () => ({ hosts: ['127.0.0.1', 'localhost'] }),
    instance: 'one',
    // Its services answer next to nothing.
    checksAnswers: false,
  })
  const sockets: Socket[] = []
  const port = await new Promise<number>((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (address) => resolve(address.port)) as Server
    server.on('connection', (socket: Socket) => sockets.push(socket))
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
  })
  return { port, url: `http://127.0.0.1:${port}`, taken: () => sockets.reduce((sum, socket) => sum + socket.bytesRead, 0) }
}

/** Sends a request whose body has no end, as fast as it is taken, until the connection is closed; what it heard, and when. */
async function sendForEver(port: number, line: string, headers: readonly string[]) {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  let heard = ''
  let heardAfterMs = Number.NaN
  const asked = performance.now()
  socket.setEncoding('utf8').on('data', (text: string) => {
    heard += text
    if (Number.isNaN(heardAfterMs)) heardAfterMs = performance.now() - asked
  })
  // It is cut off in the middle, which is what this is about.
  socket.on('error', () => undefined)
  const head = [`${line} HTTP/1.1`, `host: 127.0.0.1:${port}`, 'content-type: application/json', ...headers]
  const isCounted = headers.some((header) => header.startsWith('content-length'))
  socket.write(`${head.join('\r\n')}\r\n${isCounted ? '' : 'transfer-encoding: chunked\r\n'}\r\n`)
  const chunk = Buffer.from(`${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`)
  const send = (): void => {
    while (!socket.destroyed && socket.writable && socket.write(chunk));
  }
  socket.on('drain', send)
  send()
  await new Promise((resolve) => socket.once('close', resolve))
  return { heard, heardAfterMs, lastedMs: performance.now() - asked }
}

describe('a body without end', () => {
  const withToken = ['authorization: Bearer secret']
  test.each<[string, string, readonly string[], number]>([
    ['of somebody without a token', `POST ${runs}`, [], 401],
    ['of somebody with a wrong token', `POST ${runs}`, ['authorization: Bearer guess'], 401],
    ['that says how long it is', `POST ${runs}`, ['content-length: 1000000000'], 401],
    ['that says how long it is, with the token', `POST ${runs}`, [...withToken, 'content-length: 1000000000'], 413],
    ['to an unknown route', 'POST /nowhere', [], 404],
    ['to an unknown route, with the token', 'POST /api/v1/nothing', withToken, 404],
    ['from another site', `POST ${runs}`, [...withToken, 'origin: https://evil.example'], 403],
    ['to a route that takes one', `POST ${runs}`, withToken, 413],
    ['to a route that takes none', `GET ${runs}`, withToken, 200],
    ['to see who is there', 'GET /health/live', [], 200],
  ])('%s is answered at once and not read: %s', async (_, line, headers, status) => {
    const { port, taken } = await start()
    const { heard, heardAfterMs, lastedMs } = await sendForEver(port, line, headers)
    expect(heard).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(heard.toLowerCase()).toContain('\r\nconnection: close\r\n')
    if (status >= 400) expect(heard).toContain('application/problem+json')
    // One for the body that may be taken, one for what is on its way, and what the buffers of both sides hold.
    expect(taken()).toBeLessThan(4 * MB)
    expect(heardAfterMs).toBeLessThan(2_000)
    expect(lastedMs).toBeLessThan(5_000)
  })

  test('does not harm those who send what can be read: their connection stays', async () => {
    const { url } = await start()
    for (const [token, status] of [
      ['secret', 202],
      ['guess', 401],
    ] as const) {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      const response = await fetch(`${url}${runs}`, { method: 'POST', headers, body: '{"select":["a"]}' })
      expect(response.status).toBe(status)
      expect(response.headers.get('connection')).toBe('keep-alive')
    }
  })
})

describe('a page in a browser', () => {
  const ask = async (given: Record<string, string>, path = runs, method = 'GET') => {
    const { port } = await start()
    const headers = { host: `127.0.0.1:${port}`, authorization: 'Bearer secret', ...given }
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value.replace('{port}', String(port))}`)
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\nconnection: close\r\n\r\n`)
    let heard = ''
    for await (const chunk of socket) heard += chunk
    return Number(heard.split(' ')[1])
  }

  test.each([
    ['of another site', { origin: 'https://evil.example' }],
    ['of nowhere, such as a file or a sandbox', { origin: 'null' }],
    ['on another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['on the port that has no number', { origin: 'http://127.0.0.1' }],
    ['whose name begins like ours', { origin: 'http://127.0.0.1.evil.example:{port}' }],
    ['that bears our name as a user', { origin: 'http://127.0.0.1:{port}@evil.example' }],
    ['that came over TLS, which we do not speak', { origin: 'https://127.0.0.1:{port}' }],
    ['of another site, which loads us as an image', { 'sec-fetch-site': 'cross-site' }],
    ['of another port, which loads us as an image', { 'sec-fetch-site': 'same-site' }],
    ['that was led here by its DNS', { host: 'evil.example:{port}' }],
  ])('%s is refused, whatever it asks', async (_, headers) => {
    for (const [path, method] of [
      [runs, 'GET'],
      [runs, 'POST'],
      ['/health/live', 'GET'],
      ['/nowhere', 'DELETE'],
      [runs, 'OPTIONS'],
    ])
      expect(await ask(headers, path, method)).toBe(403)
  })

  test.each([
    ['of our own', { origin: 'http://127.0.0.1:{port}', 'sec-fetch-site': 'same-origin' }],
    ['of our own, by another name', { origin: 'http://localhost:{port}' }],
    ['that somebody opens', { 'sec-fetch-site': 'none' }],
    ['that is none, but a program', {}],
  ])('%s is answered', async (_, headers) => {
    expect(await ask(headers)).toBe(200)
  })
})

test('what cannot be had now is told with a reason and a hint, and when to ask again', async () => {
  const { url } = await start(async () => {
    throw new ServoError('unavailable', 'disk_full', 'the disk is full', { hint: 'Make room.' })
  })
  const response = await fetch(`${url}${runs}`, { headers: { authorization: 'Bearer secret' } })
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
  const asked = new ServoClient({ url, token: 'secret' }).runs.list({ limit: 1 })
  await expect(asked).rejects.toMatchObject({
    kind: 'unavailable',
    code: 'disk_full',
    message: 'the disk is full',
    hint: 'Make room.',
  })
})
