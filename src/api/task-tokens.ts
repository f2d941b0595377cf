import { timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { assert } from '../lib/assert.ts'
import { ServoError } from '../lib/error.ts'
import { hmacSha256 } from '../lib/hash.ts'
import { canonicalJson } from '../lib/json.ts'
import { HOUR_MS, toIso } from '../lib/time.ts'
import type { Clock } from '../ports/clock.ts'

/** A task token lets its bearer speak for one attempt of one task, and for nothing else. */
const attemptGrant = z.strictObject({
  tenant_id: z.string(),
  workspace_id: z.string(),
  run_id: z.string(),
  task_key: z.string(),
  attempt: z.number().int().min(1),
  attempt_id: z.string(),
})
export type AttemptGrant = z.infer<typeof attemptGrant>

const payload = attemptGrant.extend({ expires_at: z.number() })
export type VerifiedGrant = z.infer<typeof payload>

export interface SigningKey {
  /** Every token contains it, so that it names the key that signed it. */
  readonly id: string
  readonly secret: Uint8Array
}

export interface TaskTokensOptions {
  /** The first signs; all of them verify. To rotate, put a new one in front and drop the old one a lifetime later. */
  readonly keys: readonly SigningKey[]
  readonly clock: Pick<Clock, 'now'>
  readonly lifetimeMs?: number
}

export interface MintedToken {
  readonly token: string
  readonly token_expires_at: string
}

export type TokenRefusal = 'malformed' | 'unknown_key' | 'bad_signature' | 'expired' | 'wrong_attempt'

export type Verified =
  | { readonly ok: true; readonly grant: VerifiedGrant }
  | { readonly ok: false; readonly reason: TokenRefusal }

/** Names the format of the token, should there ever be another. */
const PREFIX = 'servo1'
const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/
/** As long as the hash: a shorter secret would be the weakest part. */
const MIN_SECRET_BYTES = 32
/** Much longer than the time between two heartbeats, each of which may bring a new token; short enough that a leaked token does little harm. */
const LIFETIME_MS = HOUR_MS
/** Twice the length that the longest ids give. A longer token is refused before anything is computed. */
const MAX_LENGTH = 8_192

/** Signs and checks the tokens with which workers speak about their attempts. */
export class TaskTokens {
  readonly #keys: ReadonlyMap<string, SigningKey>
  readonly #current: SigningKey
  readonly #clock: Pick<Clock, 'now'>
  readonly #lifetimeMs: number

  constructor({ keys, clock, lifetimeMs = LIFETIME_MS }: TaskTokensOptions) {
    for (const { id, secret } of keys) checkKey(id, secret)
    const [current] = keys
    assert(current !== undefined, 'task tokens need a key to sign with')
    this.#current = current
    this.#keys = new Map(keys.map((key) => [key.id, key]))
    this.#clock = clock
    this.#lifetimeMs = lifetimeMs
  }

  mint({ tenant_id, workspace_id, run_id, task_key, attempt, attempt_id }: AttemptGrant): MintedToken {
    const expires_at = this.#clock.now() + this.#lifetimeMs
    const grant = { tenant_id, workspace_id, run_id, task_key, attempt, attempt_id, expires_at }
    const body = Buffer.from(canonicalJson(grant)).toString('base64url')
    const signed = `${PREFIX}.${this.#current.id}.${body}`
    return { token: `${signed}.${signatureOf(this.#current, signed)}`, token_expires_at: toIso(expires_at) }
  }

  /** The grant of a token that is genuine, has not expired and, when `about` is given, is for that attempt. */
  verify(token: string, about: Partial<AttemptGrant> = {}): Verified {
    const parts = token.split('.')
    const [prefix, keyId = '', body = '', signature = ''] = parts
    if (token.length > MAX_LENGTH || parts.length !== 4 || prefix !== PREFIX) return refuse('malformed')
    const key = this.#keys.get(keyId)
    if (key === undefined) return refuse('unknown_key')
    if (!sameText(signature, signatureOf(key, `${prefix}.${keyId}.${body}`))) return refuse('bad_signature')
    const grant = readGrant(body)
    if (grant === undefined) return refuse('malformed')
    if (grant.expires_at <= this.#clock.now()) return refuse('expired')
    return isDeepStrictEqual({ ...grant, ...about }, grant) ? { ok: true, grant } : refuse('wrong_attempt')
  }

  /** A new token, once the present one has less than half of its life left. */
  refresh(grant: VerifiedGrant): MintedToken | undefined {
    return grant.expires_at - this.#clock.now() < this.#lifetimeMs / 2 ? this.mint(grant) : undefined
  }
}

const refuse = (reason: TokenRefusal): Verified => ({ ok: false, reason })

const signatureOf = (key: SigningKey, signed: string): string =>
  Buffer.from(hmacSha256(key.secret, signed)).toString('base64url')

/**
 * Compares the texts and not the bytes they stand for: base64 has several texts for the same bytes, and only the one that was
 * handed out is the token.
 */
function sameText(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function readGrant(body: string): VerifiedGrant | undefined {
  try {
    return payload.safeParse(JSON.parse(Buffer.from(body, 'base64url').toString())).data
  } catch {
    return undefined
  }
}

function checkKey(id: string, secret: Uint8Array): void {
  if (!KEY_ID.test(id)) {
    throw new ServoError('invalid', 'bad_key_id', `${JSON.stringify(id.slice(0, 80))} is not a valid id of a signing key`, {
      hint: 'Use 1 to 64 of A-Z a-z 0-9 _ -.',
    })
  }
  if (secret.length >= MIN_SECRET_BYTES) return
  throw new ServoError(
    'invalid',
    'weak_key',
    `the signing key ${id} has ${secret.length} bytes, fewer than ${MIN_SECRET_BYTES}`,
    {
      hint: `Make one of ${MIN_SECRET_BYTES} random bytes: openssl rand -hex ${MIN_SECRET_BYTES}.`,
    },
  )
}
