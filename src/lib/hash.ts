import { createHash, type Hash, hash, timingSafeEqual } from 'node:crypto'

/** SHA-256 as lower-case hex. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}

export function sha256Bytes(data: string | Uint8Array): Uint8Array {
  // This goes through text, because allocating a buffer costs more than hashing a short text.
  return Buffer.from(hash('sha256', data, 'binary'), 'binary')
}

/** True if both are the same text. Takes as long for any two: it compares hashes, which have equal length. */
export const isSameToken = (given: string, token: string): boolean => timingSafeEqual(sha256Bytes(given), sha256Bytes(token))

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32

/** Data up to this length is hashed where the secret is. */
const ROOM_BYTES = 1_024

/** A secret as HMAC mixes it in (RFC 2104): before the data, and before the hash of both. There is room for either behind it. */
interface Pads {
  readonly inner: Buffer
  readonly outer: Buffer
}

let lastSecret: string | Uint8Array | undefined
let lastPads: Pads | undefined

/**
 * HMAC as two hashes. Every run has an id of this kind, and Node's own makes a native object for each, which takes
 * three times as long to make and as long again to collect.
 */
export function hmacSha256(secret: string | Uint8Array, data: string): Uint8Array {
  // Text is always the same; bytes may have changed under us.
  if (lastPads === undefined || secret !== lastSecret || typeof secret !== 'string') lastPads = padsOf(secret)
  lastSecret = secret
  const { inner, outer } = lastPads
  // A character has at most three bytes.
  const fits = data.length * 3 <= ROOM_BYTES
  const mixed = fits
    ? inner.subarray(0, BLOCK_BYTES + inner.write(data, BLOCK_BYTES))
    : Buffer.concat([inner.subarray(0, BLOCK_BYTES), Buffer.from(data)])
  outer.write(hash('sha256', mixed, 'binary'), BLOCK_BYTES, 'binary')
  return sha256Bytes(outer)
}

function padsOf(secret: string | Uint8Array): Pads {
  const bytes = typeof secret === 'string' ? Buffer.from(secret) : secret
  const key = bytes.length > BLOCK_BYTES ? sha256Bytes(bytes) : bytes
  const inner = Buffer.alloc(BLOCK_BYTES + ROOM_BYTES, 0x36)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c)
  for (const [i, byte] of key.entries()) {
    inner[i] = byte ^ 0x36
    outer[i] = byte ^ 0x5c
  }
  return { inner, outer }
}

/** Text shorter than this is hashed in one go. */
const HELD_LENGTH = 65_536

/** SHA-256 of text that comes piece by piece. While it is short it is held: an object that hashes bit by bit is slower to make than that. */
export class Sha256 {
  #hash: Hash | undefined
  #held = ''

  update(text: string): void {
    this.#held += text
    if (this.#held.length < HELD_LENGTH) return
    this.#hash ??= createHash('sha256')
    this.#hash.update(this.#held)
    this.#held = ''
  }

  digest(): Uint8Array {
    return this.#hash === undefined ? sha256Bytes(this.#held) : this.#hash.update(this.#held).digest()
  }
}
