import { createServer, type Server } from 'node:http'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { ServerLimits } from '../../contract/server-settings.ts'
import { ServoError } from '../../lib/error.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { Reach } from '../front-door.ts'

/** How a server listens. */
export interface Binding {
  /** The address of this machine at which it listens; loopback if absent. */
  readonly host?: string | undefined
  /** Proxies that are believed what they say of callers: addresses, or networks such as 10.0.0.0/8. */
  readonly trustedProxies?: readonly string[] | undefined
}

export const LOOPBACK_HOST = '127.0.0.1'
/** The address by which other machines reach the server. */
const PUBLIC_URL = 'SERVO_PUBLIC_URL'

/** Slower senders keep a connection that others could use. */
const REQUEST_TIMEOUT_MS = 30 * SECOND_MS
const HEADERS_TIMEOUT_MS = 10 * SECOND_MS
/** Longer than proxies keep a connection that is not used, so that they close it and not we, just when a request is on its way. */
const KEEP_ALIVE_MS = 75 * SECOND_MS
const MAX_HEADER_BYTES = 16_384
const MAX_CONNECTIONS = 10_000

interface Listening {
  readonly host: string
  /** The first of these that is free; 0 for any. */
  readonly ports: readonly number[]
  readonly limits: ServerLimits
}

/** Listens at the first port that is free. Throws if all are taken. */
export async function listenAt(
  fetch: (request: Request, env: object) => Response | Promise<Response>,
  { host, ports: [port = 0, ...others], limits }: Listening,
): Promise<{ http: Server; port: number }> {
  const timeoutMs = limits.request_timeout_ms ?? REQUEST_TIMEOUT_MS
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, timeoutMs),
    requestTimeout: timeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node looks for late senders this often.
    connectionsCheckingInterval: SECOND_MS,
  }
  const http = createServer(options, getRequestListener(fetch))
  http.maxConnections = limits.connections ?? MAX_CONNECTIONS
  const isOpen = await new Promise<boolean>((resolve, reject) => {
    http.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' && others.length > 0) resolve(false)
      else reject(error)
    })
    http.listen(port, host, () => resolve(true))
  })
  if (!isOpen) return await listenAt(fetch, { host, ports: others, limits })
  const address = http.address()
  return { http, port: typeof address === 'object' && address !== null ? address.port : port }
}

/** Checks what can be checked before anything is started, and says where the server is reached from. */
export function reachOf({ host, trustedProxies = [] }: Binding, environment: NodeJS.ProcessEnv): Reach {
  if (host !== undefined && isIP(host) === 0 && host !== 'localhost')
    throw badBinding(`invalid value '${host}' for --host`, 'Use an address of this machine: 127.0.0.1, 0.0.0.0 or ::.')
  const { [PUBLIC_URL]: text = '' } = environment
  const publicUrl = text === '' ? undefined : publicUrlOf(text)
  return { publicUrl, byAddress: !isLoopback(host), proxies: proxiesOf(trustedProxies) }
}

export const isLoopback = (host: string = LOOPBACK_HOST): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/.test(host)

/** The URL by which commands of this machine reach a server that listens there. */
export function localUrlOf(host: string, port: number): string {
  const here = host === '0.0.0.0' || host === '::' ? LOOPBACK_HOST : host
  return `http://${here.includes(':') ? `[${here}]` : here}:${port}`
}

/** The URL by which workers of other machines reach the server; undefined if they do not. */
export const workerUrlOf = (host: string, { publicUrl }: Reach): string | undefined =>
  isLoopback(host) ? undefined : publicUrl?.href.replace(/\/+$/, '')

/** Refuses to be reached by other machines while nobody there could prove who they are. Returns what the owner is to be warned of. */
export function checkReach(host: string, { publicUrl }: Reach, knowsCallers: boolean): ServoError | undefined {
  if (isLoopback(host)) return undefined
  if (!knowsCallers)
    throw badBinding(
      `--host ${host} would let other machines reach this server, and it knows nobody there`,
      'Make a token first (servo tokens create --role admin --name …), or set server.oidc in servo.config.ts.',
    )
  if (publicUrl === undefined)
    throw badBinding(
      `--host ${host} would let other machines reach this server, and it does not know by which name`,
      `Set ${PUBLIC_URL} to its address, for example https://servo.example or http://servo.internal:4400.`,
    )
  return publicUrl.protocol === 'http:' ? unencrypted(publicUrl) : undefined
}

const unencrypted = (url: URL): ServoError =>
  new ServoError('invalid', 'unencrypted', `tokens are sent unencrypted to ${url.host}`, {
    hint: 'Put a proxy with TLS in front, unless nobody else can listen in that network.',
  })

function publicUrlOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === '')
    return url
  throw new ServoError('invalid', 'bad_setting', `${PUBLIC_URL} cannot be ${JSON.stringify(text.slice(0, 100))}`, {
    hint: `Set ${PUBLIC_URL} to an address like https://servo.example, or unset it.`,
  })
}

function proxiesOf(given: readonly string[]): BlockList | undefined {
  if (given.length === 0) return undefined
  const proxies = new BlockList()
  for (const text of given) {
    const [address = '', bits, ...rest] = text.split('/')
    const most = isIPv4(address) ? 32 : 128
    const length = bits === undefined ? most : Number(bits)
    // A proxy that may be anybody is no proxy.
    if (isIP(address) === 0 || rest.length > 0 || bits === '' || !Number.isInteger(length) || length < 1 || length > most)
      throw badBinding(`invalid value '${text}' for --trusted-proxy`, 'Use an address or a network: 127.0.0.1, or 10.0.0.0/8.')
    proxies.addSubnet(address, length, isIPv4(address) ? 'ipv4' : 'ipv6')
  }
  return proxies
}

const badBinding = (message: string, hint: string): ServoError => new ServoError('invalid', 'bad_binding', message, { hint })
