/** How many keys of a dynamic set an evaluation added or removed. */
export interface KeyCount {
  readonly set_name: string
  readonly count: number
}

/** What an evaluation did besides asking for runs. */
export interface BesidesRuns {
  readonly keys_added: readonly KeyCount[]
  readonly keys_removed: readonly KeyCount[]
  readonly cursor_moved: boolean
}

interface Evaluation {
  readonly accepted: boolean
  readonly keys_added: readonly KeyCount[] | null
  readonly keys_removed: readonly KeyCount[] | null
  readonly cursor_before: string | null
  readonly cursor_after: string | null
}

/** An evaluation that was not accepted has done nothing. */
export const besidesRuns = ({ accepted, keys_added, keys_removed, cursor_before, cursor_after }: Evaluation): BesidesRuns => ({
  keys_added: (accepted && keys_added) || [],
  keys_removed: (accepted && keys_removed) || [],
  cursor_moved: accepted && cursor_after !== null && cursor_after !== cursor_before,
})

const keysText = (count: number): string => (count === 1 ? '1 key' : `${count.toLocaleString('en')} keys`)

export const wordsBesidesRuns = ({ keys_added, keys_removed, cursor_moved }: BesidesRuns): string[] => [
  ...keys_added.map(({ set_name, count }) => `added ${keysText(count)} to ${set_name}`),
  ...keys_removed.map(({ set_name, count }) => `removed ${keysText(count)} from ${set_name}`),
  ...(cursor_moved ? ['moved its cursor'] : []),
]
