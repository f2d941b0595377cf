export function isTimeZoneName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '') return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
