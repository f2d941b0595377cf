import { z } from 'zod'
import type { Clock } from '../../ports/clock.ts'
import { FetchedKeys, type PublicKeys, type PublishedKey } from '../keys/fetched-keys.ts'

/** Where Google publishes the keys that sign the tokens of its pushes. */
const GOOGLE_KEYS_URL = 'https://www.googleapis.com/oauth2/v3/certs'

export interface GoogleKeysOptions {
  readonly clock: Pick<Clock, 'now'>
  readonly url?: string
  readonly fetch?: typeof globalThis.fetch
  /** Called with the reason when the keys cannot be fetched. */
  readonly onTrouble?: (error: unknown) => void
}

const keySet = z.object({ keys: z.array(z.unknown()) })
/** The public part of a key that may sign tokens. Keys of other kinds are passed over. */
const signingKey = z.object({
  kid: z.string(),
  kty: z.literal('RSA'),
  use: z.literal('sig').optional(),
  alg: z.literal('RS256').optional(),
  n: z.string(),
  e: z.string(),
})

/** Google's keys, by which the tokens of pushes are verified. */
export function googleKeys({ url = GOOGLE_KEYS_URL, ...options }: GoogleKeysOptions): PublicKeys {
  return new FetchedKeys({
    ...options,
    name: 'the keys of Google',
    load: async (get) => {
      const { json, ageMs } = await get(url)
      return { keys: await importKeys(json), ageMs }
    },
  })
}

async function importKeys(answer: unknown): Promise<Map<string, PublishedKey>> {
  const { importJWK } = await import('jose')
  const keys = new Map<string, PublishedKey>()
  for (const each of keySet.parse(answer).keys) {
    const { data } = signingKey.safeParse(each)
    if (data === undefined) continue
    keys.set(data.kid, { key: await importJWK({ kty: data.kty, n: data.n, e: data.e }, 'RS256'), alg: 'RS256' })
  }
  return keys
}
