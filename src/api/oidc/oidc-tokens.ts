import type { JWTPayload } from 'jose'
import type { OidcIssuer } from '../../contract/server-settings.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { isObject } from '../../lib/is-object.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { type Caller, type Credential, type KnownCaller, unauthenticated } from '../access/access.ts'
import type { PublicKeys } from '../keys/fetched-keys.ts'
import { type IssuerKeysOptions, issuerKeys } from './issuer-keys.ts'
import { claimOf, matchingRole } from './matching-role.ts'

/** For the clocks of both machines to differ. */
const LEEWAY_MS = MINUTE_MS
/** Half of what all headers of a request may have. A longer one is refused before anything is computed. */
const MAX_LENGTH = 8_192
/** As long as the name of any other actor on record. */
const MAX_ACTOR = 200

interface Known {
  readonly settings: OidcIssuer
  /** Changes with the settings: whoever was let in by others signs in again. */
  readonly version: string
  readonly keys: PublicKeys
}

/** Tokens of OpenID Connect: their bearers are who an issuer says they are, and may do what their claims give them. */
export class OidcTokens {
  readonly #options: IssuerKeysOptions
  readonly #issuers = new Map<string, Known>()

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  get isUsed(): boolean {
    return this.#issuers.size > 0
  }

  /** Trusts these issuers from now on, and no others. Keys that were fetched stay. */
  use(issuers: readonly OidcIssuer[]): void {
    const before = new Map(this.#issuers)
    this.#issuers.clear()
    for (const settings of issuers) {
      const keys = before.get(settings.issuer)?.keys ?? issuerKeys(settings.issuer, this.#options)
      this.#issuers.set(settings.issuer, { settings, version: sha256(JSON.stringify(settings)).slice(0, 16), keys })
    }
  }

  /** The bearer; undefined if this is no token of an issuer that is trusted. Throws if it is one and does not count. */
  async bearer(token: string): Promise<KnownCaller | undefined> {
    const read = this.isUsed && token.length <= MAX_LENGTH ? unverified(token) : undefined
    const known = read && this.#issuers.get(read.iss)
    if (read === undefined || known === undefined) return undefined
    const { settings, version, keys } = known
    const found = read.kid === undefined ? undefined : await keys.keyOf(read.kid)
    if (found === undefined || found.alg !== read.alg) throw notValid('it is not signed by a key of its issuer')
    const claims = await verified(token, found, settings, this.#options.clock.now())
    const actor = actorOf(claims, settings)
    const role = matchingRole(claims, settings.roles)
    if (role === undefined)
      throw new ServoError('invalid', 'not_permitted', `${actor} has no role here`, {
        hint: 'The config of the project says which claims give a role: server.oidc.roles.',
      })
    const credential = {
      kind: 'oidc' as const,
      issuer: settings.issuer,
      version,
      name: actor,
      role,
      until: (claims.exp ?? 0) * SECOND_MS,
    }
    return { name: actor, role, credential }
  }

  /** Throws if somebody who was let in before would no longer be let in with that token. */
  recall({ issuer, version, until, name, role }: Credential & { kind: 'oidc' }): Pick<Caller, 'name' | 'role'> {
    if (this.#issuers.get(issuer)?.version !== version) throw notValid('what its issuer may give here has changed')
    if (until <= this.#options.clock.now()) throw expired()
    return { name, role }
  }
}

/** What a token says of itself, before anybody believes it. */
function unverified(token: string): { iss: string; alg: unknown; kid: string | undefined } | undefined {
  const [head, body, signature, ...rest] = token.split('.')
  if (head === undefined || body === undefined || signature === undefined || rest.length > 0) return undefined
  const [header, payload] = [decoded(head), decoded(body)]
  if (!isObject(header) || !isObject(payload) || typeof payload['iss'] !== 'string') return undefined
  return { iss: payload['iss'], alg: header['alg'], kid: typeof header['kid'] === 'string' ? header['kid'] : undefined }
}

function decoded(part: string): unknown {
  try {
    return JSON.parse(Buffer.from(part, 'base64url').toString())
  } catch {
    return undefined
  }
}

async function verified(
  token: string,
  { key, alg }: NonNullable<Awaited<ReturnType<PublicKeys['keyOf']>>>,
  { issuer, audience }: OidcIssuer,
  now: number,
): Promise<JWTPayload> {
  const { errors, jwtVerify } = await import('jose')
  try {
    const { payload } = await jwtVerify(token, key, {
      // The key chooses, not the token: `none`, or an HMAC made with the public key, would be anybody's.
      algorithms: [alg],
      issuer,
      audience: [...audience],
      requiredClaims: ['exp', 'sub'],
      clockTolerance: LEEWAY_MS / SECOND_MS,
      currentDate: new Date(now),
    })
    return payload
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw expired()
    if (error instanceof errors.JWTClaimValidationFailed)
      throw notValid(
        error.claim === 'aud'
          ? 'it is meant for another audience'
          : error.claim === 'nbf'
            ? 'it is not valid yet'
            : `its claim ${error.claim} is missing or wrong`,
      )
    if (error instanceof errors.JOSEError) throw notValid('its signature or its form is wrong')
    throw error
  }
}

/** Who is put on record: nobody can choose what is in the last brackets. */
function actorOf(claims: JWTPayload, { issuer, actor }: OidcIssuer): string {
  const claim = claimOf(claims, actor)
  if (typeof claim !== 'string' || claim === '' || claim.length > MAX_ACTOR || /\p{C}/u.test(claim))
    throw notValid(`it has no claim ${actor} that can be put on record`)
  return `${claim} (${issuer.replace(/^https?:\/\//, '')})`
}

const notValid = (why: string): ServoError =>
  unauthenticated(`the token does not count: ${why}`, 'Get a new token for this server from its issuer.')

const expired = (): ServoError =>
  new ServoError('invalid', 'token_expired', 'the token has expired', { hint: 'Get a new token from its issuer.' })
