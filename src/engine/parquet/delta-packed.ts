import { readDeltas } from '../../parquet/inside-hyparquet.ts'

/**
 * Whole numbers of Parquet's DELTA_BINARY_PACKED: the first one, then for each block the least difference between neighbours,
 * and by how much each difference is larger, in as many bits as the largest needs.
 *
 * hyparquet makes a BigInt of every value. Differences between timestamps fit into numbers; anything larger is left to
 * hyparquet.
 */
export function unpackDeltas(bytes: Uint8Array, into: Float64Array): Float64Array {
  return unpackSmall(bytes, into) ? into : unpackAny(bytes, into)
}

/** Sums of two such numbers are exact, too. */
const LARGEST = 2 ** 51

function unpackSmall(bytes: Uint8Array, into: Float64Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = view.getUint8(at++)
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  const zigzag = (): number => {
    const value = varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
  const inBlock = varint()
  const parts = varint()
  const inPart = inBlock / parts
  if (varint() !== into.length) throw new Error(`there are not ${into.length} values`)
  let value = zigzag()
  if (Math.abs(value) > LARGEST) return false
  if (into.length > 0) into[0] = value
  for (let done = 1; done < into.length; ) {
    const least = zigzag()
    if (Math.abs(least) > LARGEST) return false
    const widths = at
    at += parts
    for (let part = 0; part < parts && done < into.length; part++) {
      const width = view.getUint8(widths + part)
      if (width > 32) return false
      const end = Math.min(done + inPart, into.length)
      if (width === 0) {
        for (; done < end; done++) into[done] = value += least
        continue
      }
      const mask = width === 32 ? 0xffff_ffff : (1 << width) - 1
      let word = view.getUint32(at, true)
      let next = at + 4
      let used = 0
      for (; done < end; done++) {
        let more = word >>> used
        used += width
        if (used > 32) {
          used -= 32
          word = view.getUint32(next, true)
          next += 4
          more |= word << (width - used)
        } else if (used === 32 && done + 1 < end) {
          used = 0
          word = view.getUint32(next, true)
          next += 4
        }
        into[done] = value += least + ((more & mask) >>> 0)
      }
      at += (inPart / 8) * width
    }
  }
  return true
}

function unpackAny(bytes: Uint8Array, into: Float64Array): Float64Array {
  const values = readDeltas(bytes, new BigInt64Array(into.length))
  for (let i = 0; i < into.length; i++) into[i] = Number(values[i])
  return into
}
