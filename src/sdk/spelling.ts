/** Up to three of the words that could have been meant, the nearest first. */
export function nearest(word: string, words: Iterable<string>): string[] {
  const limit = Math.max(1, Math.floor(word.length / 3))
  return [...words]
    .map((candidate) => ({ candidate, distance: distance(word.toLowerCase(), candidate.toLowerCase(), limit) }))
    .filter((it) => it.distance <= limit)
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1))
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

/** How many letters must be added, dropped or changed; the last word of a key alone counts as one step away. */
function distance(a: string, b: string, limit: number): number {
  if (a.split('/').at(-1) === b.split('/').at(-1)) return a === b ? 0 : 1
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
