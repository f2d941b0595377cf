const canonical = new Map<string, string>()

/** True if two names are of one time zone: `UTC` is `Etc/UTC`, and `Asia/Calcutta` is `Asia/Kolkata`. */
export function sameZone(a: string, b: string): boolean {
  return a === b || canonicalZone(a) === canonicalZone(b)
}

function canonicalZone(name: string): string {
  const known = canonical.get(name)
  if (known !== undefined) return known
  const zone = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone
  canonical.set(name, zone)
  return zone
}
