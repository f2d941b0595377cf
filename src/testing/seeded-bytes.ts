/** Bytes that look random and are the same for the same seed. */
export function seededBytes(seed: number): (length: number) => Uint8Array {
  let state = seed >>> 0
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state >>> 24
  }
  return (length) => Uint8Array.from({ length }, next)
}
