import { lookup } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { hasErrorCode, messageOf } from '../../../lib/error.ts'
import { SECOND_MS } from '../../../lib/time.ts'
import { isPublicAddress } from './private-addresses.ts'

export interface Outgoing {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Addresses of this machine and of private networks are refused otherwise, and so is HTTP without TLS. */
  readonly allowPrivate: boolean
  readonly timeoutMs: number
}

export type Answered =
  | { readonly status: number; readonly retryAfterMs?: number }
  /** Nobody answered. `final`: trying again is of no use. */
  | { readonly error: string; readonly final: boolean }

export type Send = (outgoing: Outgoing) => Promise<Answered>

/**
 * Posts to an address of the config. The name is resolved once, and the connection goes to the address that was checked, so that a name
 * cannot mean one address when it is checked and another when it is used. Redirects are answers like any other, and not followed. What
 * errors say has no part of the address: that may be a secret.
 */
export const sendOutgoing: Send = async ({ url, headers, body, allowPrivate, timeoutMs }) => {
  if (!URL.canParse(url)) return { error: 'its address is not a URL', final: true }
  const target = new URL(url)
  if (target.protocol !== 'https:' && !(target.protocol === 'http:' && allowPrivate))
    return { error: 'its address does not begin with https:', final: true }
  const host = target.hostname.replace(/^\[|\]$/g, '')
  try {
    const found = isIP(host) > 0 ? [{ address: host, family: isIP(host) }] : await lookup(host, { all: true })
    const chosen = allowPrivate ? found[0] : found.find(({ address }) => isPublicAddress(address))
    if (chosen === undefined) return { error: 'its address is one of a private network, which is not allowed', final: true }
    const pinned: LookupFunction = (_, options, done) =>
      options.all ? done(null, [chosen]) : done(null, chosen.address, chosen.family)
    return await new Promise<Answered>((resolve, reject) => {
      const sent = (target.protocol === 'https:' ? requestHttps : requestHttp)(
        target,
        {
          method: 'POST',
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
          lookup: pinned,
          // A connection that stays open would go on to an address that is checked no more.
          agent: false,
          signal: AbortSignal.timeout(timeoutMs),
        },
        (answer) => {
          // Whatever it says is not kept.
          answer.resume()
          answer.destroy()
          const after = Number(answer.headers['retry-after'] ?? Number.NaN)
          resolve({ status: answer.statusCode ?? 0, ...(after >= 0 && { retryAfterMs: after * SECOND_MS }) })
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
  } catch (error) {
    return { error: reasonOf(error), final: false }
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError'))
    return 'it did not answer in time'
  if (hasErrorCode(error, 'ENOTFOUND') || hasErrorCode(error, 'EAI_AGAIN')) return 'its name could not be resolved'
  if (hasErrorCode(error, 'ECONNREFUSED')) return 'it refused the connection'
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  return code === undefined ? messageOf(error).slice(0, 200) : `the connection failed (${code})`
}
