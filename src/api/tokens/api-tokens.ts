import { timingSafeEqual } from 'node:crypto'
import type { Scope } from '../../engine/paths.ts'
import { base32 } from '../../lib/base32.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256, sha256Bytes } from '../../lib/hash.ts'
import { DAY_MS, toIso } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type KnownCaller, unauthenticated } from '../access/access.ts'
import type { ListedToken, NewToken, NewTokenBody, Revocation, TokenRecord, TokensApi } from './token-contract.ts'
import { isTokenId, TokenFiles, type TokenNames } from './token-files.ts'

export interface ApiTokensOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly clock: AlarmClock
  readonly random: (length: number) => Uint8Array
}

const LIFETIME_MS = 90 * DAY_MS
/** Half of the second in which a revocation acts; the other half is for the listing. */
const FRESH_MS = 500
/** However many unknown tokens are tried, the store is asked no more often than this. */
const PAUSE_MS = 250
/** A prefix by which scanners of secrets recognise a token, the id of its record, and 256 random bits. */
const FORM = /^servo_([a-z2-7]{16})_([A-Za-z0-9_-]{43})$/

/**
 * The API tokens of a workspace. They are files in its store, so every process that can read the store knows them: one that was
 * made or revoked elsewhere is noticed by a listing, which happens only when a token is presented.
 */
export class ApiTokens implements TokensApi {
  readonly #options: ApiTokensOptions
  readonly #files: TokenFiles
  /** Records that were read. They never change. */
  readonly #records = new Map<string, TokenRecord>()
  #last: { readonly at: number; readonly names: Promise<TokenNames> } | undefined
  #next: Promise<TokenNames> | undefined

  constructor(options: ApiTokensOptions) {
    this.#options = options
    this.#files = new TokenFiles(options.store, options.scope)
  }

  async create({ name, role, expires_at }: NewTokenBody, user: string): Promise<NewToken> {
    const { scope, clock, random } = this.#options
    const now = clock.now()
    const expires = expires_at === undefined ? toIso(now + LIFETIME_MS) : expires_at
    if (expires !== null && Date.parse(expires) <= now) throw expiresInPast(expires)
    const key = base32(random(10), 16)
    const secret = Buffer.from(random(32)).toString('base64url')
    const about = {
      token_id: `tok_${key}`,
      name,
      role,
      created_by: user,
      created_at: toIso(now),
      expires_at: expires,
    }
    const { tenant_id, workspace_id } = scope
    const outcome = await this.#files.add({ ...about, tenant_id, workspace_id, sha256: sha256(secret) })
    // Of 80 random bits, or of a write that was repeated.
    if (outcome === 'exists')
      throw new ServoError('unavailable', 'token_exists', `the id tok_${key} is taken`, { hint: 'Try again.' })
    return { ...about, status: 'active', token: `servo_${key}_${secret}` }
  }

  async list(): Promise<readonly ListedToken[]> {
    const { made, revoked } = await this.#files.names()
    const listed: ListedToken[] = []
    for (const id of made) {
      const record = await this.#record(id)
      if (record === undefined) continue
      const { sha256: _, tenant_id: _t, workspace_id: _w, ...about } = record
      const revocation = revoked.has(id) ? await this.#files.revocation(id) : undefined
      const status = revocation !== undefined ? 'revoked' : this.#isExpired(record) ? 'expired' : 'active'
      listed.push({
        ...about,
        status,
        revoked_by: revocation?.revoked_by ?? null,
        revoked_at: revocation?.revoked_at ?? null,
      })
    }
    return listed.sort((a, b) => (a.created_at < b.created_at ? 1 : -1))
  }

  async revoke(tokenId: string, user: string): Promise<Revocation> {
    const { made } = isTokenId(tokenId) ? await this.#files.names() : { made: new Set() }
    if (!made.has(tokenId)) throw noSuchToken(tokenId)
    const revoked_at = toIso(this.#options.clock.now())
    return await this.#files.revoke({ token_id: tokenId, revoked_by: user, revoked_at })
  }

  /** The bearer of this token. Throws if it does not count, or if that cannot be found out. */
  async bearer(token: string): Promise<KnownCaller> {
    const [, key, secret = ''] = FORM.exec(token) ?? []
    if (key === undefined) throw unknownToken()
    return await this.#bearerOf(`tok_${key}`, (record) => isSecretOf(record, secret))
  }

  /** The bearer of the token with this id, who has shown it before. Throws as above. */
  async recall(id: string): Promise<KnownCaller> {
    return await this.#bearerOf(id, () => true)
  }

  /** True if there is a token that counts. */
  async hasActive(): Promise<boolean> {
    return (await this.list()).some(({ status }) => status === 'active')
  }

  async #bearerOf(id: string, isProven: (record: TokenRecord) => boolean): Promise<KnownCaller> {
    const recent = await this.#recentNames()
    this.#refreshSoon()
    // One that is not among them may have been made since, by another process.
    const names = recent?.made.has(id) ? recent : await this.#newerNames()
    const record = names.made.has(id) ? await this.#record(id) : undefined
    if (record === undefined || !this.#isOurs(record) || !isProven(record)) throw unknownToken()
    if (names.revoked.has(id)) throw tokenRevoked(record)
    if (this.#isExpired(record)) throw tokenExpired(record)
    return { name: `${record.name} (${id})`, role: record.role, credential: { kind: 'token', id } }
  }

  async #record(id: string): Promise<TokenRecord | undefined> {
    const known = this.#records.get(id)
    if (known !== undefined) return known
    const record = await this.#files.read(id)
    if (record !== undefined) this.#records.set(id, record)
    return record
  }

  /** A file may have been copied from another workspace. */
  #isOurs({ tenant_id, workspace_id }: TokenRecord): boolean {
    const { scope } = this.#options
    return tenant_id === scope.tenant_id && workspace_id === scope.workspace_id
  }

  #isExpired({ expires_at }: TokenRecord): boolean {
    return expires_at !== null && Date.parse(expires_at) <= this.#options.clock.now()
  }

  /** The last listing, while that is fresh. */
  async #recentNames(): Promise<TokenNames | undefined> {
    const isFresh = this.#last !== undefined && this.#options.clock.monotonic() - this.#last.at < FRESH_MS
    return isFresh ? await this.#last?.names : undefined
  }

  /** Looks again before the last listing is too old, so that those who come all the time never wait for one. */
  #refreshSoon(): void {
    if (this.#last === undefined || this.#next !== undefined || this.#options.clock.monotonic() - this.#last.at < PAUSE_MS)
      return
    // Whoever needs it asks again, and hears of it.
    this.#newerNames().catch(() => undefined)
  }

  /** A listing that begins from now on. All who want one share it, and it waits until the one before is a moment old. */
  #newerNames(): Promise<TokenNames> {
    this.#next ??= this.#listSoon()
    return this.#next
  }

  async #listSoon(): Promise<TokenNames> {
    const { clock } = this.#options
    const pause = this.#last === undefined ? 0 : this.#last.at + PAUSE_MS - clock.monotonic()
    // Also without a pause this goes on only after `#next` was set.
    await (pause > 0 ? clock.sleep(pause) : undefined)
    const names = this.#files.names()
    const listing = { at: clock.monotonic(), names }
    this.#next = undefined
    this.#last = listing
    try {
      return await names
    } catch (error) {
      // What was not found out is asked again.
      if (this.#last === listing) this.#last = undefined
      throw error
    }
  }
}

/** Takes as long whatever was given. */
const isSecretOf = (record: TokenRecord, secret: string): boolean =>
  timingSafeEqual(sha256Bytes(secret), Buffer.from(record.sha256, 'hex'))

const unknownToken = (): ServoError =>
  unauthenticated(
    'unknown token',
    'Check SERVO_TOKEN or --token. servo tokens create makes a token, on the machine of the server.',
  )

const another = ({ name, role }: TokenRecord): string => `Make another: servo tokens create --role ${role} --name ${name}`

const tokenRevoked = (record: TokenRecord): ServoError =>
  new ServoError('invalid', 'token_revoked', `the token ${record.name} (${record.token_id}) was revoked`, {
    hint: another(record),
  })

const tokenExpired = (record: TokenRecord): ServoError =>
  new ServoError('invalid', 'token_expired', `the token ${record.name} (${record.token_id}) expired at ${record.expires_at}`, {
    hint: another(record),
  })

const noSuchToken = (id: string): ServoError =>
  new ServoError('not_found', 'no_such_token', `token ${JSON.stringify(id.slice(0, 60))} not found`, {
    hint: 'servo tokens list shows the ids.',
  })

const expiresInPast = (at: string): ServoError =>
  new ServoError('invalid', 'bad_body', `expires_at: ${at} has passed`, {
    hint: 'Give a time in the future, or null for a token that never expires.',
    facts: { field: 'expires_at' },
  })
