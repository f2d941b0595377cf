import { isServoError, ServoError } from '../../lib/error.ts'

/** Why a request to a sensor is refused. These are codes of problems, and a fixed set, so that counts of them stay small. */
export const refusalReasons = [
  'bad_signature',
  'old_timestamp',
  'bad_token',
  'token_expired',
  'wrong_audience',
  'wrong_service_account',
  'forbidden',
  'unsupported_media_type',
  'body_too_large',
  'bad_json',
  'bad_body',
  'bad_event',
  'secret_missing',
  'audience_unknown',
  'keys_unreachable',
  'disabled',
  'paused',
  'automation_paused',
  'automation_off',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** The reason, if the error is a refusal. */
export const reasonOf = (error: unknown): RefusalReason | undefined =>
  isServoError(error) ? refusalReasons.find((reason) => reason === error.code) : undefined

export const refused = (reason: RefusalReason, message: string, hint: string): ServoError =>
  new ServoError('invalid', reason, message, { hint })

/** The sensor cannot be reached until its owner has repaired something, so the sender is to try again. */
export const notReady = (reason: RefusalReason, message: string, hint: string): ServoError =>
  new ServoError('unavailable', reason, message, { hint, facts: { retry_after_sec: RETRY_AFTER_SEC } })

/** Anybody could sign with a secret that is empty, so without one nobody is let in. */
export const noSecret = (): ServoError =>
  notReady('secret_missing', 'this sensor has no secret to verify the request with', 'Its owner has been told.')

/** What the owner of the server is told. It names the variables, never their values. */
export const secretMissing = (sensor: string, names: readonly string[]): ServoError =>
  new ServoError(
    'unavailable',
    'secret_missing',
    `requests for the sensor ${sensor} are refused: ${names.join(', ')} is not set, or is not a valid secret`,
    {
      hint: `Set ${names[0]} in the environment of the server, and start it again. A secret that starts with whsec_ continues in base64.`,
    },
  )

/** How long a sender is asked to wait for a person to do something. */
export const RETRY_AFTER_SEC = 60
