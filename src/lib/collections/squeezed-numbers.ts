import { deflateRawSync, inflateRawSync } from 'node:zlib'

/** Whole numbers as text that takes as little room as they allow. */
export function squeezeNumbers(numbers: readonly number[]): string {
  const bytes: number[] = []
  for (const number of numbers) {
    let rest = number
    // Seven bits at a time, the lowest first; the eighth says that more follow. A number may need more than 32 bits.
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128)
    bytes.push(rest)
  }
  return deflateRawSync(Uint8Array.from(bytes), { level: 9 }).toString('base64')
}

/** What `squeezeNumbers` has made. Throws if a text is something else, or if more than `maxBytes` are in it. */
export function unsqueezeNumbers(text: string, maxBytes: number): number[] {
  const numbers: number[] = []
  let [value, weight] = [0, 1]
  for (const byte of inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: maxBytes })) {
    value += (byte % 128) * weight
    weight *= 128
    if (byte >= 128) continue
    numbers.push(value)
    ;[value, weight] = [0, 1]
  }
  return numbers
}
