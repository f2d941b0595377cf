import { createHmac } from 'node:crypto'

/** A request as it came, before anything of its body is understood. */
export interface SignedRequest {
  readonly headers: Headers
  readonly body: Uint8Array
  /** Any of them counts. */
  readonly secrets: readonly string[]
  readonly now: number
}

/** What the verification of a request has found out about it. */
export interface Voucher {
  /** The id that the scheme gives to messages, if it does. */
  readonly id: string | null
  /** True if the id is signed, and so cannot be changed by somebody who sends the request again. */
  readonly isIdSigned: boolean
  readonly attributes: Readonly<Record<string, string>>
  readonly published_at: string | null
}

/** HMAC-SHA256 over the parts, one after the other. Unlike `hmacSha256` it takes bytes, which a body may be. */
export function hmacOf(key: string | Uint8Array, parts: readonly (string | Uint8Array)[], encoding: 'hex' | 'base64'): string {
  const hmac = createHmac('sha256', key)
  for (const part of parts) hmac.update(part)
  return hmac.digest(encoding)
}
