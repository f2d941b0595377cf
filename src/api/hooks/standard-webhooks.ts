import { isSameToken } from '../../lib/hash.ts'
import { MINUTE_MS, toIso } from '../../lib/time.ts'
import { noSecret, refused } from './refusals.ts'
import { hmacOf, type SignedRequest, type Voucher } from './signed-request.ts'

/** As the libraries of Standard Webhooks have it: long enough for a retry of the network, short enough for a replay to be useless. */
const TOLERANCE_MS = 5 * MINUTE_MS
const PREFIX = 'whsec_'
/** The shortest key that the specification allows. Shorter text that happens to be base64 is meant as it stands. */
const MIN_KEY_BYTES = 24
const SIGNED = 'Sign `{webhook-id}.{webhook-timestamp}.{body}` as standardwebhooks.com says, with the secret of this sensor.'

/** Verifies a request by the rules of Standard Webhooks. Its id is signed, unlike those of other schemes. */
export function verifyStandard({ headers, body, secrets, now }: SignedRequest): Voucher {
  const keys = secrets.flatMap(keysOf)
  if (keys.length === 0) throw noSecret()
  const id = headers.get('webhook-id') ?? ''
  const timestamp = headers.get('webhook-timestamp') ?? ''
  const given = signaturesIn(headers.get('webhook-signature') ?? '')
  if (id === '' || !/^\d{1,12}$/.test(timestamp) || given.length === 0)
    throw refused('bad_signature', 'webhook-id, webhook-timestamp or webhook-signature is missing or malformed', SIGNED)
  const expected = keys.map((key) => hmacOf(key, [id, '.', timestamp, '.', body], 'base64'))
  if (!given.some((signature) => expected.some((each) => isSameToken(signature, each))))
    throw refused('bad_signature', 'no signature of this request is valid', SIGNED)
  // Only now, so that the difference is told to senders that know the secret.
  const sentAt = Number(timestamp) * 1_000
  const seconds = Math.round((now - sentAt) / 1_000)
  if (Math.abs(now - sentAt) > TOLERANCE_MS)
    throw refused(
      'old_timestamp',
      `the request was signed ${Math.abs(seconds)} seconds ${seconds > 0 ? 'ago' : 'ahead of the clock of this server'}`,
      `The limit is ${TOLERANCE_MS / 1_000} seconds. Sign each try again, and check the clocks of both machines.`,
    )
  return { id, isIdSigned: true, attributes: {}, published_at: toIso(sentAt) }
}

/** `v1,{base64} v1,{base64} …`; other versions are passed over. Headers that are sent twice arrive joined by a comma. */
const signaturesIn = (header: string): string[] =>
  header
    .split(/,? +/)
    .filter((each) => each.startsWith('v1,'))
    .map((each) => each.slice('v1,'.length))

/** Signs a message by the rules of Standard Webhooks, with each of the secrets. Undefined if none of them is a key. */
export function signStandard(
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
  secrets: readonly string[],
): string | undefined {
  // As a receiver reads it: base64 behind the prefix, and otherwise the text as it stands.
  const keys = secrets.flatMap((secret) => keysOf(secret).slice(0, 1))
  if (keys.length === 0) return undefined
  return keys.map((key) => `v1,${hmacOf(key, [id, '.', String(timestamp), '.', body], 'base64')}`).join(' ')
}

/** Text without the prefix is meant as it stands by some senders, and as base64 by the libraries of Standard Webhooks. */
function keysOf(secret: string): Uint8Array[] {
  if (secret.startsWith(PREFIX)) return base64(secret.slice(PREFIX.length))
  return [Buffer.from(secret), ...base64(secret).filter(({ length }) => length >= MIN_KEY_BYTES)]
}

/** None for text that is not base64, because Node reads from any text what it can, which may be nothing: a key that all know. */
function base64(text: string): Uint8Array[] {
  const bytes = Buffer.from(text, 'base64')
  const isWhole = bytes.toString('base64').replaceAll('=', '') === text.replaceAll('=', '')
  return isWhole && bytes.length > 0 ? [bytes] : []
}
