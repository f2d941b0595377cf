/** What a project declares under a name that may have been another one before. */
interface Declared {
  readonly name: string
  readonly renamed_from?: string | null | undefined
}

/** A definition on record, removed ones too: their ids come back with their names. */
interface OnRecord {
  readonly id: string
  readonly name: string
  readonly defined_at: number
  readonly removed_at: number | null
}

/** The ids of what is declared and was declared before, by its name now. No two names share an id. */
export function keptIds(declared: readonly Declared[], onRecord: Iterable<OnRecord>): ReadonlyMap<string, string> {
  const byName = new Map<string, OnRecord>()
  // A name may have belonged to several; the one that still has it, or had it last, counts.
  for (const row of [...onRecord].sort(
    (a, b) => Number(a.removed_at === null) - Number(b.removed_at === null) || a.defined_at - b.defined_at,
  ))
    byName.set(row.name, row)
  const ids = new Map<string, string>()
  const taken = new Set<string>()
  const give = (name: string, row: OnRecord | undefined): void => {
    if (row === undefined || ids.has(name) || taken.has(row.id)) return
    ids.set(name, row.id)
    taken.add(row.id)
  }
  for (const { name } of declared) give(name, byName.get(name))
  for (const { name, renamed_from } of declared) if (renamed_from != null) give(name, byName.get(renamed_from))
  return ids
}
