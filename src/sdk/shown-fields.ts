import { show } from './invalid.ts'

/** Any value as JSON, with everything in it that can be shown: people throw what no JSON has. */
export const shownFields = (value: unknown): string => (typeof value === 'bigint' ? String(value) : show(plain(value, [])))

function plain(value: unknown, around: readonly object[]): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (around.includes(value)) return '[circular]'
  const within = [...around, value]
  const json: unknown = Reflect.get(value, 'toJSON')
  if (typeof json === 'function') return plain(Reflect.apply(json, value, []), within)
  if (value instanceof Map) return plain(Object.fromEntries(value), within)
  if (value instanceof Set) return plain([...value], within)
  if (Array.isArray(value)) return value.map((item) => plain(item, within))
  const fields = Object.keys(value).flatMap((name) => {
    try {
      return [[name, plain(Reflect.get(value, name), within)]]
    } catch {
      // A getter that throws has nothing to show.
      return []
    }
  })
  return Object.fromEntries(fields)
}
