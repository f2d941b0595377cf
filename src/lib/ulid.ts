import { ServoError } from './error.ts'

/** Crockford's base32: sorts like the number it encodes. */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const PATTERN = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const TIME_LENGTH = 10
const MAX_TIME = 2 ** 48 - 1

export function isUlid(text: string): boolean {
  return PATTERN.test(text)
}

/** The milliseconds since 1970 that a ULID carries. */
export function ulidTime(ulid: string): number {
  if (!isUlid(ulid)) throw new ServoError('invalid', 'bad_ulid', `${JSON.stringify(ulid.slice(0, 40))} is not a ULID`)
  let time = 0
  for (let i = 0; i < TIME_LENGTH; i++) time = time * 32 + ALPHABET.indexOf(ulid.charAt(i))
  return time
}

/** The smallest ULID of a moment. */
export function ulidFloor(timeMs: number): string {
  return encodeTime(timeMs) + '0'.repeat(16)
}

/** The same ULID at another moment. */
export function ulidAt(timeMs: number, ulid: string): string {
  return encodeTime(timeMs) + ulid.slice(TIME_LENGTH)
}

/** The next larger ULID. */
export function ulidAfter(ulid: string): string {
  for (let i = ulid.length - 1; i >= 0; i--) {
    const digit = ALPHABET.indexOf(ulid.charAt(i))
    if (digit < 31) return ulid.slice(0, i) + ALPHABET[digit + 1] + '0'.repeat(ulid.length - 1 - i)
  }
  throw new ServoError('bug', 'no_next_ulid', `there is no ULID after ${ulid}`)
}

function encodeTime(timeMs: number): string {
  let rest = Math.min(Math.max(0, Math.floor(timeMs)), MAX_TIME)
  let text = ''
  for (let i = 0; i < TIME_LENGTH; i++) {
    text = ALPHABET[rest % 32] + text
    rest = Math.floor(rest / 32)
  }
  return text
}

/** For 64 ids. */
const RANDOM_BYTES = 1_024

export type UlidSource = () => string

/**
 * ULIDs that only grow within one process, also within a millisecond and when the clock steps back, so that the order
 * of ids is the order of events of one writer.
 */
export function ulidSource(now: () => number, random: (length: number) => Uint8Array): UlidSource {
  let lastTime = -1
  let writtenTime = -1
  const digits = new Uint8Array(16)
  /** As bytes: a text that grows by one character after the other takes three times as long. */
  const text = Buffer.alloc(TIME_LENGTH + digits.length)
  /** Drawn for many at a time: a few bytes of the system's randomness cost as much as a page. */
  let drawn = new Uint8Array(0)
  let used = 0
  return () => {
    const time = now()
    if (time > lastTime) {
      lastTime = time
      if (used + 16 > drawn.length) {
        drawn = Uint8Array.from(random(RANDOM_BYTES))
        used = 0
      }
      for (let i = 0; i < 16; i++) digits[i] = (drawn[used++] ?? 0) & 31
    } else {
      increment()
    }
    if (writtenTime !== lastTime) text.write(encodeTime(lastTime), 'latin1')
    writtenTime = lastTime
    for (let i = 0; i < digits.length; i++) text[TIME_LENGTH + i] = ALPHABET.charCodeAt(digits[i] ?? 0)
    return text.toString('latin1')
  }

  function increment(): void {
    for (let i = 15; i >= 0; i--) {
      const digit = digits[i] ?? 0
      if (digit < 31) {
        digits[i] = digit + 1
        return
      }
      digits[i] = 0
    }
    // 2^80 ids in one millisecond: borrow the next one rather than repeat.
    lastTime += 1
  }
}
