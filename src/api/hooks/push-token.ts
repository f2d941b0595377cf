import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { MINUTE_MS } from '../../lib/time.ts'
import type { PublicKeys } from '../keys/fetched-keys.ts'
import { type RefusalReason, refused } from './refusals.ts'

/** For the clocks of both machines to differ. */
const LEEWAY_MS = MINUTE_MS
const ISSUERS = ['https://accounts.google.com', 'accounts.google.com']
/** Twice the length of a token of Google. A longer one is refused before anything is computed. */
const MAX_LENGTH = 4_096

export interface PushTokenCheck {
  readonly keys: PublicKeys
  readonly now: number
  /** Any of them counts. */
  readonly audiences: readonly string[]
  readonly serviceAccount: string | null
}

/** Throws unless Google vouches with this token that the push is meant for us and, if that is asked, who set it up. */
export async function verifyPushToken(token: string, { keys, now, audiences, serviceAccount }: PushTokenCheck): Promise<void> {
  const { email, email_verified, iat = 0 } = await claimsOf(token, { keys, now, audiences })
  if (iat * 1_000 > now + LEEWAY_MS) throw badToken('bad_token', 'the token is not valid yet')
  if (serviceAccount !== null && (email !== serviceAccount || email_verified !== true))
    throw refused(
      'wrong_service_account',
      'the push comes from a service account that this sensor does not accept',
      'Set the service account of the subscription, or service_account of the sensor.',
    )
}

async function claimsOf(
  token: string,
  { keys, now, audiences }: Pick<PushTokenCheck, 'keys' | 'now' | 'audiences'>,
): Promise<JWTPayload> {
  const kid = kidOf(token)
  const { key } = (kid === undefined ? undefined : await keys.keyOf(kid)) ?? {}
  if (key === undefined) throw badToken('bad_token', 'the token is not signed by a key of Google')
  try {
    const { payload } = await jwtVerify(token, key, {
      // The token does not choose: `none`, or an HMAC made with the public key, would be anybody's.
      algorithms: ['RS256'],
      issuer: ISSUERS,
      audience: [...audiences],
      requiredClaims: ['iat', 'exp'],
      clockTolerance: LEEWAY_MS / 1_000,
      currentDate: new Date(now),
    })
    return payload
  } catch (error) {
    if (error instanceof errors.JWTExpired) throw badToken('token_expired', 'the token has expired')
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud')
      throw badToken('wrong_audience', 'the token is meant for another audience')
    if (error instanceof errors.JOSEError) throw badToken('bad_token', 'the token is not valid')
    throw error
  }
}

/** The name of the key, if the token says that it is signed as Google does. Nobody is asked for the key of any other. */
function kidOf(token: string): string | undefined {
  if (token.length > MAX_LENGTH) return undefined
  try {
    const { alg, kid } = decodeProtectedHeader(token)
    return alg === 'RS256' && typeof kid === 'string' ? kid : undefined
  } catch {
    return undefined
  }
}

const badToken = (reason: RefusalReason, message: string): Error =>
  refused(
    reason,
    message,
    'Turn on authentication of the subscription, with the audience of the sensor or the push address as its audience.',
  )
