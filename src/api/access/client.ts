import { type BlockList, isIPv4, isIPv6 } from 'node:net'
import type { MiddlewareHandler } from 'hono'
import { connectionOf } from './connection.ts'

/** Where a request comes from, and how its sender sees this server. */
export interface Client {
  /** The address of its sender. Empty if there is no connection. */
  readonly address: string
  readonly protocol: 'http' | 'https'
  /** The name and port that the sender used. */
  readonly host: string
}

const clients = new WeakMap<Request, Client>()

/** Notes where requests come from. Only what these proxies say of it is believed: anybody can write such headers. */
export const noteClient =
  (proxies: () => BlockList | undefined): MiddlewareHandler =>
  async (c, next) => {
    const { incoming } = connectionOf(c)
    clients.set(c.req.raw, readClient(c.req.raw.headers, incoming?.socket.remoteAddress ?? '', proxies()))
    await next()
  }

/** Where a request comes from. */
export const callingClient = (request: Request): Client =>
  clients.get(request) ?? { address: '', protocol: 'http', host: request.headers.get('host') ?? '' }

export function readClient(headers: Headers, peer: string, proxies: BlockList | undefined): Client {
  const address = plain(peer)
  const host = headers.get('host') ?? ''
  if (proxies === undefined || !isAmong(proxies, address)) return { address, protocol: 'http', host }
  return {
    address: senderOf(headers.get('x-forwarded-for') ?? '', address, proxies),
    protocol: lastOf(headers.get('x-forwarded-proto')) === 'https' ? 'https' : 'http',
    host: lastOf(headers.get('x-forwarded-host')) || host,
  }
}

/** Each proxy adds whom it was called by: the last one that is no proxy of ours is the sender. What stands before may be invented. */
function senderOf(forwarded: string, peer: string, proxies: BlockList): string {
  let sender = peer
  for (const each of forwarded.split(',').reverse()) {
    const address = plain(each.trim())
    if (!isIPv4(address) && !isIPv6(address)) return sender
    sender = address
    if (!isAmong(proxies, address)) return sender
  }
  return sender
}

const lastOf = (header: string | null): string => header?.split(',').at(-1)?.trim() ?? ''

/** IPv4 over a socket for both has an address such as ::ffff:10.0.0.1. */
const plain = (address: string): string => (address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address)

const isAmong = (list: BlockList, address: string): boolean =>
  isIPv4(address) ? list.check(address, 'ipv4') : isIPv6(address) && list.check(address, 'ipv6')
