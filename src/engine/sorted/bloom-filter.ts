import type { KeyPart } from '../../model/rows.ts'

/**
 * Parquet's split-block Bloom filter (parquet-format/BloomFilter.md) over the values of one column. "Not there" is
 * certain, "there" is wrong once in a hundred times. Written by hand for its speed: the hash of hyparquet works on BigInt
 * and would take as long as all the rest of writing a file.
 */
const FALSE_POSITIVES = 0.01
const WORDS = 8
const SALT = [0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31]

export function bloomOf(values: Iterable<KeyPart>): Uint32Array {
  const distinct = new Set(values)
  const bits = (-8 * distinct.size) / Math.log(1 - FALSE_POSITIVES ** (1 / 8))
  const blocks = new Uint32Array(Math.max(1, Math.ceil(bits / 256)) * WORDS)
  for (const value of distinct) {
    hash(value)
    const block = blockAt(blocks)
    const low = lo
    for (let word = 0; word < WORDS; word++) blocks[block + word]! |= bitOf(low, word)
  }
  return blocks
}

export function mayContain(blocks: Uint32Array, value: KeyPart): boolean {
  hash(value)
  const block = blockAt(blocks)
  const low = lo
  for (let word = 0; word < WORDS; word++) if ((blocks[block + word]! & bitOf(low, word)) === 0) return false
  return true
}

function blockAt(blocks: Uint32Array): number {
  return Math.floor(((hi >>> 0) * (blocks.length / WORDS)) / 2 ** 32) * WORDS
}

function bitOf(low: number, word: number): number {
  return 1 << (Math.imul(low, SALT[word]!) >>> 27)
}

/** XXH64 with seed 0 of a value as Parquet stores it, as two halves of 32 bits. For the tests. */
export function xxh64(value: KeyPart): bigint {
  hash(value)
  return (BigInt(hi >>> 0) << 32n) | BigInt(lo >>> 0)
}

// The accumulator: signed halves, because V8 keeps those unboxed in variables that outlive a call.
let hi = 0
let lo = 0

const encoder = new TextEncoder()
let bytes = new Uint8Array(256)
let view = new DataView(bytes.buffer)

function hash(value: KeyPart): void {
  if (typeof value === 'number') {
    view.setInt32(0, value, true)
    digest(4)
    return
  }
  if (value.length * 3 > bytes.length) {
    bytes = new Uint8Array(value.length * 3)
    view = new DataView(bytes.buffer)
  }
  digest(encoder.encodeInto(value, bytes).written)
}

const P1_HI = 0x9e3779b1 | 0
const P1_LO = 0x85ebca87 | 0
const P2_HI = 0xc2b2ae3d | 0
const P2_LO = 0x27d4eb4f | 0
const P3_HI = 0x165667b1 | 0
const P3_LO = 0x9e3779f9 | 0
const P4_HI = 0x85ebca77 | 0
const P4_LO = 0xc2b2ae63 | 0
const P5_HI = 0x27d4eb2f | 0
const P5_LO = 0x165667c5 | 0

const lanes = new Int32Array(8)

function digest(length: number): void {
  let at = 0
  if (length >= 32) {
    set(P1_HI, P1_LO)
    add(P2_HI, P2_LO)
    lanes.set([hi, lo, P2_HI, P2_LO, 0, 0])
    set(~P1_HI, ~P1_LO)
    add(0, 1)
    lanes.set([hi, lo], 6)
    for (; at + 32 <= length; at += 32) {
      for (let lane = 0; lane < 8; lane += 2) {
        const offset = at + lane * 4
        round(lanes[lane]!, lanes[lane + 1]!, view.getInt32(offset + 4, true), view.getInt32(offset, true))
        lanes[lane] = hi
        lanes[lane + 1] = lo
      }
    }
    let sumHi = 0
    let sumLo = 0
    for (let lane = 0; lane < 8; lane += 2) {
      set(lanes[lane]!, lanes[lane + 1]!)
      rotate([1, 7, 12, 18][lane / 2]!)
      add(sumHi, sumLo)
      sumHi = hi
      sumLo = lo
    }
    for (let lane = 0; lane < 8; lane += 2) {
      round(0, 0, lanes[lane]!, lanes[lane + 1]!)
      set(hi ^ sumHi, lo ^ sumLo)
      multiply(P1_HI, P1_LO)
      add(P4_HI, P4_LO)
      sumHi = hi
      sumLo = lo
    }
  } else {
    set(P5_HI, P5_LO)
  }
  add(0, length)
  for (; at + 8 <= length; at += 8) {
    const beforeHi = hi
    const beforeLo = lo
    round(0, 0, view.getInt32(at + 4, true), view.getInt32(at, true))
    set(hi ^ beforeHi, lo ^ beforeLo)
    rotate(27)
    multiply(P1_HI, P1_LO)
    add(P4_HI, P4_LO)
  }
  if (at + 4 <= length) {
    const beforeHi = hi
    const beforeLo = lo
    set(0, view.getInt32(at, true))
    multiply(P1_HI, P1_LO)
    set(hi ^ beforeHi, lo ^ beforeLo)
    rotate(23)
    multiply(P2_HI, P2_LO)
    add(P3_HI, P3_LO)
    at += 4
  }
  for (; at < length; at++) {
    const beforeHi = hi
    const beforeLo = lo
    set(0, view.getUint8(at))
    multiply(P5_HI, P5_LO)
    set(hi ^ beforeHi, lo ^ beforeLo)
    rotate(11)
    multiply(P1_HI, P1_LO)
  }
  lo ^= hi >>> 1
  multiply(P2_HI, P2_LO)
  set(hi ^ (hi >>> 29), lo ^ ((lo >>> 29) | (hi << 3)))
  multiply(P3_HI, P3_LO)
  lo ^= hi
}

function round(accHi: number, accLo: number, valueHi: number, valueLo: number): void {
  set(valueHi, valueLo)
  multiply(P2_HI, P2_LO)
  add(accHi, accLo)
  rotate(31)
  multiply(P1_HI, P1_LO)
}

function set(h: number, l: number): void {
  hi = h | 0
  lo = l | 0
}

function add(h: number, l: number): void {
  const sum = (lo + l) | 0
  hi = (hi + h + (sum >>> 0 < lo >>> 0 ? 1 : 0)) | 0
  lo = sum
}

/** Left, by fewer than 32 bits. */
function rotate(by: number): void {
  const h = hi
  hi = (h << by) | (lo >>> (32 - by))
  lo = (lo << by) | (h >>> (32 - by))
}

/** Modulo 2^64. The upper half of the product of the lower halves is made of 16-bit pieces, which never round. */
function multiply(h: number, l: number): void {
  const a0 = lo & 0xffff
  const a1 = lo >>> 16
  const b0 = l & 0xffff
  const b1 = l >>> 16
  const middle = a1 * b0 + ((a0 * b0) >>> 16)
  const carry = a0 * b1 + (middle & 0xffff)
  const upper = a1 * b1 + (middle >>> 16) + (carry >>> 16)
  hi = (upper + Math.imul(hi, l) + Math.imul(lo, h)) | 0
  lo = Math.imul(lo, l)
}
