import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ServerLimits } from '../../contract/server-settings.ts'
import { checkReach, isLoopback, listenAt, localUrlOf, reachOf } from './listen.ts'

const PUBLIC = { SERVO_PUBLIC_URL: 'https://servo.example' }

describe('[U11] where a server may listen', () => {
  const attempt = (host: string, environment: NodeJS.ProcessEnv, knowsCallers: boolean): string => {
    try {
      checkReach(host, reachOf({ host }, environment), knowsCallers)
      return 'listens'
    } catch (error) {
      return (error as Error).message
    }
  }

  test('on this machine in any case', () => {
    for (const host of ['127.0.0.1', '::1', 'localhost', '127.8.9.10']) expect(attempt(host, {}, false)).toBe('listens')
  })

  test('elsewhere only if somebody there can prove who they are, and it has a name', () => {
    for (const host of ['0.0.0.0', '::', '10.0.0.5']) {
      expect(attempt(host, PUBLIC, true)).toBe('listens')
      expect(attempt(host, PUBLIC, false)).toMatch(/knows nobody there/)
      expect(attempt(host, {}, true)).toMatch(/does not know by which name/)
    }
  })

  test.each(['servo.example', '', '0', '256.1.1.1', '127.0.0.1.evil.example'])('not at %j, which is no address', (host) => {
    expect(attempt(host, PUBLIC, true)).toMatch(/invalid value .* for --host/)
    expect(isLoopback(host)).toBe(false)
  })

  test.each(['servo.example', 'ftp://servo.example', 'https://user@servo.example', 'https://servo.example/?a=1'])(
    'not by the name %s',
    (url) => {
      expect(() => reachOf({}, { SERVO_PUBLIC_URL: url })).toThrow(/SERVO_PUBLIC_URL cannot be/)
    },
  )

  test('and commands of this machine find it by an address of this machine', () => {
    expect([localUrlOf('0.0.0.0', 1), localUrlOf('::', 1)]).toEqual(['http://127.0.0.1:1', 'http://127.0.0.1:1'])
    expect([localUrlOf('10.0.0.5', 1), localUrlOf('::1', 1)]).toEqual(['http://10.0.0.5:1', 'http://[::1]:1'])
  })
})

describe('[U11] a proxy that is trusted', () => {
  test('is an address or a network', () => {
    const { proxies } = reachOf({ trustedProxies: ['127.0.0.1', '10.0.0.0/8', 'fd00::/8'] }, {})
    expect(['127.0.0.1', '10.255.0.1', '127.0.0.2', '11.0.0.1'].map((each) => proxies?.check(each, 'ipv4'))).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(reachOf({}, {}).proxies).toBeUndefined()
  })

  test.each(['0.0.0.0/0', '::/0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', 'proxy', '10.0.0.0/1e1x', '10.0.0.0/-1'])(
    'is never %s',
    (network) => {
      expect(() => reachOf({ trustedProxies: [network] }, {})).toThrow(/for --trusted-proxy/)
    },
  )
})

describe('[U10] a connection', () => {
  async function listening(limits: ServerLimits): Promise<{ http: Server; port: number; read: () => number }> {
    let read = 0
    const fetch = async (request: Request): Promise<Response> => {
      for await (const chunk of request.body ?? []) read += chunk.length
      return new Response('ok')
    }
    const opened = await listenAt(fetch, { host: '127.0.0.1', ports: [0], limits })
    onTestFinished(() => {
      opened.http.closeAllConnections()
      opened.http.close()
    })
    return { ...opened, read: () => read }
  }

  const opened = (port: number): Socket => {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    return socket
  }

  async function heard(socket: Socket): Promise<string> {
    let text = ''
    // A connection that is refused may be reset.
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      text += chunk
    })
    await new Promise((resolve) => socket.once('close', resolve))
    return text
  }

  test('on which a request arrives too slowly is closed: its body, or its headers', async () => {
    const { port, read } = await listening({ request_timeout_ms: 200 })
    const slow = opened(port)
    slow.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nbegun')
    const silent = opened(port)
    silent.write('GET / HTTP/1.1\r\nhost: a\r\n')
    const [body, headers] = await Promise.all([heard(slow), heard(silent)])
    expect(body).not.toContain('200 OK')
    expect(headers).toMatch(/^HTTP\/1\.1 408 /)
    expect(read()).toBe(5)
  })

  test('whose headers are too long is refused with 431', async () => {
    const { port } = await listening({})
    const socket = opened(port)
    socket.write(`GET / HTTP/1.1\r\nhost: a\r\ncookie: ${'a'.repeat(20_000)}\r\n\r\n`)
    expect(await heard(socket)).toMatch(/^HTTP\/1\.1 431 /)
  })

  test('beyond the limit is closed, and another one has room when one ends', async () => {
    const { port, http } = await listening({ connections: 2 })
    const held = [opened(port), opened(port)]
    await Promise.all(held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
    const dropped = new Promise((resolve) => http.once('drop', resolve))
    expect(await heard(opened(port))).toBe('')
    await dropped
    const ended = new Promise((resolve) => http.once('connection', (socket) => resolve(socket)))
    held[0]?.destroy()
    const ask = async (): Promise<string> => {
      for (;;) {
        const socket = opened(port)
        socket.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
        const text = await heard(socket)
        if (text !== '') return text
      }
    }
    expect(await ask()).toContain('200 OK')
    await ended
  })
})
