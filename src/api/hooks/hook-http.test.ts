import type { Server } from 'node:http'
import { connect } from 'node:net'
import { serve } from '@hono/node-server'
import { describe, expect, onTestFinished, test } from 'vitest'
import { HookBench } from '../../testing/hook-bench.ts'

const HOOK = '/hooks/acme/analytics/orders'

/** The routes on a port of this machine, and the bytes that they have taken in. */
async function start() {
  const bench = new HookBench().define({ type: 'webhook', path: 'orders', verify: 'token', secrets: ['SHOP_TOKEN'] })
  bench.environment = { SHOP_TOKEN: 'right' }
  let taken = () => 0
  const port = await new Promise<number>((resolve) => {
    const server = serve({ fetch: bench.app.fetch, port: 0, hostname: '127.0.0.1' }, (address) =>
      resolve(address.port),
    ) as Server
    server.on('connection', (socket) => {
      taken = () => socket.bytesRead
    })
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
  })
  return { bench, port, taken: () => taken() }
}

/** Sends text as it stands over a connection; returns what comes back until the server closes it. */
async function speak(port: number, text: string, body: () => string | undefined = () => undefined): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  let heard = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    heard += chunk
  })
  socket.write(text)
  const send = (): void => {
    for (let chunk = body(); chunk !== undefined && !socket.destroyed; chunk = body()) if (!socket.write(chunk)) return
  }
  socket.on('drain', send)
  send()
  await new Promise((resolve) => socket.once('close', resolve))
  return heard
}

const request = (...headers: string[]) =>
  [`POST ${HOOK} HTTP/1.1`, 'host: hooks.example', 'connection: close', 'authorization: Bearer right', ...headers, '', ''].join(
    '\r\n',
  )
const TEXT = 'content-type: text/plain'

/** A body of so many bytes, in chunks as HTTP has them. */
function chunks(bytes: number): () => string | undefined {
  let left = bytes
  return () => {
    if (left < 0) return undefined
    const size = Math.min(left, 65_536)
    left = left === 0 ? -1 : left - size
    return `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
  }
}

describe('[A48] over HTTP', () => {
  test('a body without a length is read in chunks', async () => {
    const { bench, port } = await start()
    expect(await speak(port, request(TEXT, 'transfer-encoding: chunked'), chunks(100_000))).toMatch(/^HTTP\/1.1 200 /)
    expect(bench.delivered).toMatchObject([{ body_size: 100_000 }])
  })

  test.each([
    ['whose length is declared', `content-length: ${10_000_000}`],
    ['whose length is not declared', 'transfer-encoding: chunked'],
  ])('a body of 10 MB %s is refused and not read to its end', async (_, header) => {
    const { bench, port, taken } = await start()
    expect(await speak(port, request(TEXT, header), chunks(10_000_000))).toMatch(/^HTTP\/1.1 413 /)
    expect([bench.delivered, bench.hooks.refusals('inbox')]).toEqual([[], { body_too_large: 1 }])
    // One for the body that may be taken, one for what is on its way, and what the buffers of both sides hold.
    expect(taken()).toBeLessThan(4 * 2 ** 20)
  })

  test('a header that is sent twice is not the token', async () => {
    const { bench, port } = await start()
    expect(await speak(port, request(TEXT, 'authorization: Bearer guess', 'content-length: 0'))).toMatch(/^HTTP\/1.1 401 /)
    expect(bench.delivered).toEqual([])
  })

  test('neither a length nor chunks is no body', async () => {
    const { bench, port } = await start()
    expect(await speak(port, request())).toMatch(/^HTTP\/1.1 200 /)
    expect(bench.delivered).toMatchObject([{ body_size: 0, message: { data: null } }])
  })

  test('HEAD is refused without a body', async () => {
    const { port } = await start()
    const heard = await speak(port, request().replace('POST', 'HEAD'))
    expect(heard).toMatch(/^HTTP\/1.1 405 /)
    expect(heard.split('\r\n\r\n')[1]).toBe('')
  })

  test('a sender that hangs up in the middle of its body delivers nothing', async () => {
    const { bench, port } = await start()
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(`${request(TEXT, 'content-length: 100')}half`)
    await new Promise((resolve) => setTimeout(resolve, 50))
    socket.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect([bench.delivered, bench.troubles]).toEqual([[], []])
  })

  test('the rest of the server still refuses a name that it does not know', async () => {
    const { port } = await start()
    expect(await speak(port, request().replace(HOOK, '/health/live').replace('POST', 'GET'))).toMatch(/^HTTP\/1.1 403 /)
  })
})
