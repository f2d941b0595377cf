const RFC4648_LOWER = 'abcdefghijklmnopqrstuvwxyz234567'

/** RFC 4648 base32 in lower case without padding: safe in file names, URLs and every queue's task ids; cut to `length` characters. */
export function base32(bytes: Uint8Array, length = Number.POSITIVE_INFINITY): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    if (text.length >= length) break
    buffer = (buffer << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += RFC4648_LOWER[(buffer >>> bits) & 31]
    }
    buffer &= (1 << bits) - 1
  }
  if (bits > 0) text += RFC4648_LOWER[(buffer << (5 - bits)) & 31]
  return text.length > length ? text.slice(0, length) : text
}
