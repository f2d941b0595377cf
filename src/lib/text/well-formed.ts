/**
 * The same value as every JSON reader takes it: half of a surrogate pair, which has no UTF-8 form, becomes U+FFFD, and members called
 * `__proto__`, which many readers drop or worse, are left out.
 */
export function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(wellFormed)
  const members = Object.entries(value).filter(([name]) => name !== '__proto__')
  return Object.fromEntries(members.map(([name, member]) => [name.toWellFormed(), wellFormed(member)]))
}
