import { z } from 'zod'
import { isSafeUrl } from '../../lib/safe-url.ts'
import { withoutUndefined } from '../../lib/without-undefined.ts'
import type { Clock } from '../../ports/clock.ts'
import { FetchedKeys, type PublicKeys, type PublishedKey } from '../keys/fetched-keys.ts'

export interface IssuerKeysOptions {
  readonly clock: Pick<Clock, 'now'>
  readonly fetch?: typeof globalThis.fetch
  readonly onTrouble?: (error: unknown) => void
}

const discovery = z.object({ issuer: z.string(), jwks_uri: z.string() })
const keySet = z.object({ keys: z.array(z.unknown()) })
const published = z.object({
  kid: z.string().max(1_000),
  kty: z.enum(['RSA', 'EC', 'OKP']),
  use: z.literal('sig').optional(),
  alg: z.string().optional(),
  crv: z.string().optional(),
  n: z.string().optional(),
  e: z.string().optional(),
  x: z.string().optional(),
  y: z.string().optional(),
})

/** The algorithms with a public and a private key that issuers use. A secret that both sides know would let anybody sign who can verify. */
const algorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']
/** What a key is for that does not say it. */
const usualAlgorithm: Readonly<Record<string, string>> = {
  RSA: 'RS256',
  'EC P-256': 'ES256',
  'EC P-384': 'ES384',
  'OKP Ed25519': 'EdDSA',
}
/** Issuers have two or three. */
const MAX_KEYS = 100

/** The keys of an issuer, found as OpenID Connect Discovery says. */
export function issuerKeys(issuer: string, options: IssuerKeysOptions): PublicKeys {
  return new FetchedKeys({
    ...options,
    name: `the keys of ${issuer}`,
    load: async (get) => {
      const { json } = await get(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
      const found = discovery.parse(json)
      if (found.issuer !== issuer) throw new Error(`it says that it is ${found.issuer.slice(0, 200)}`)
      if (!isSafeUrl(found.jwks_uri)) throw new Error(`its jwks_uri ${found.jwks_uri.slice(0, 200)} is not https`)
      const { json: set, ageMs } = await get(found.jwks_uri)
      return { keys: await importKeys(set), ageMs }
    },
  })
}

async function importKeys(answer: unknown): Promise<Map<string, PublishedKey>> {
  const { importJWK } = await import('jose')
  const keys = new Map<string, PublishedKey>()
  for (const each of keySet.parse(answer).keys.slice(0, MAX_KEYS)) {
    const { data } = published.safeParse(each)
    if (data === undefined) continue
    const alg = data.alg ?? usualAlgorithm[data.kty === 'RSA' ? 'RSA' : `${data.kty} ${data.crv}`]
    if (alg === undefined || !algorithms.includes(alg)) continue
    // A key that cannot be read keeps no other from counting.
    const key = await importJWK(withoutUndefined(data), alg).catch(() => undefined)
    if (key !== undefined && 'type' in key && key.type === 'public') keys.set(data.kid, { key, alg })
  }
  return keys
}
