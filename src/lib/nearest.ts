/** A word with more typos than this is not recognisable; a long one, like `retries` for `retry`, may have one more. */
const MAX_EDITS = 2
const LONG_WORD = 7

/**
 * The candidate that a misspelt word was probably meant to be: the same but for case, or the fewest edits away. `orders`
 * is one step away from `raw/orders`.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let fewest = MAX_EDITS + 1 + (word.length >= LONG_WORD ? 1 : 0)
  const wanted = word.toLowerCase()
  for (const candidate of candidates) {
    const edits = stepsBetween(wanted, candidate.toLowerCase(), fewest - 1)
    if (edits >= fewest || edits >= wanted.length) continue
    best = candidate
    fewest = edits
  }
  return best
}

function stepsBetween(a: string, b: string, most: number): number {
  if (a !== '' && a !== b && a.split('/').at(-1) === b.split('/').at(-1)) return 1
  return editsBetween(a, b, most)
}

/** Letters to insert, delete or replace; anything above `most` when it is more than that. */
function editsBetween(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) > most) return most + 1
  // A row of the Levenshtein table: the edits that turn the part of `a` read so far into each prefix of `b`.
  let above = Array.from({ length: b.length }, (_, column) => column + 1)
  for (let row = 0; row < a.length; row++) {
    let [left, diagonal] = [row + 1, row]
    let least = left
    above = above.map((up, column) => {
      const replaced = diagonal + (a[row] === b[column] ? 0 : 1)
      diagonal = up
      left = Math.min(replaced, up + 1, left + 1)
      least = Math.min(least, left)
      return left
    })
    if (least > most) return most + 1
  }
  return above.at(-1) ?? a.length
}
