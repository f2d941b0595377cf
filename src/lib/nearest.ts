/** As many slips of a finger as still leave a word recognisable. */
const MAX_EDITS = 2

/**
 * The candidate that a misspelt word was probably meant to be: the same but for case, or the fewest edits away. Who writes
 * `orders` and means `raw/orders` is one step away.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let fewest = MAX_EDITS + 1
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
  let above = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    let least = row
    for (let column = 1; column <= b.length; column++) {
      const replaced = (above[column - 1] as number) + (a[row - 1] === b[column - 1] ? 0 : 1)
      const edits = Math.min(replaced, (above[column] as number) + 1, (current[column - 1] as number) + 1)
      current.push(edits)
      least = Math.min(least, edits)
    }
    if (least > most) return most + 1
    above = current
  }
  return above[b.length] as number
}
