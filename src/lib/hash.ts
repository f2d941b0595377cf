import { createHash, createHmac, hash } from 'node:crypto'

/** SHA-256 as lower-case hex. */
export function sha256(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex')
}

export function sha256Bytes(data: string | Uint8Array): Uint8Array {
  // By way of text, because a buffer of its own for each costs more than the hash of a short text.
  return Buffer.from(hash('sha256', data, 'binary'), 'binary')
}

export function hmacSha256(secret: string | Uint8Array, data: string): Uint8Array {
  return createHmac('sha256', secret).update(data).digest()
}

/** SHA-256 of text that comes piece by piece and is never held as a whole. */
export class Sha256 {
  readonly #hash = createHash('sha256')

  update(text: string): void {
    this.#hash.update(text)
  }

  digest(): Uint8Array {
    return this.#hash.digest()
  }
}
