import { messageOf } from '../lib/error.ts'
import { show } from './invalid.ts'

/** Any value as JSON, with everything in it that can be told: people throw what no JSON has, and what throws when it is read. */
export const shownFields = (value: unknown): string => (typeof value === 'bigint' ? String(value) : show(plainFields(value)))

/** The same as a value. */
export const plainFields = (value: unknown): unknown => plain(value, [])

/** The members of an object. One that cannot be read says so instead of its value. */
export function membersOf(value: object): [string, unknown][] {
  const read = (name: string): unknown => {
    try {
      return Reflect.get(value, name)
    } catch (error) {
      return unreadable(error)
    }
  }
  try {
    return Object.keys(value).map((name) => [name, read(name)])
  } catch (error) {
    // A proxy may refuse to name its members.
    return [['unreadable', messageOf(error)]]
  }
}

/** Objects of which JSON shows nothing, as something that it shows: an error as its message and those of its causes. */
export function plainObject(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  return value instanceof Error && Object.keys(value).length === 0 ? errorText(value) : value
}

/** As many as a person reads; causes may go in circles. */
const SHOWN_CAUSES = 5

function errorText(error: Error): string {
  const texts: string[] = []
  for (let cause: unknown = error; cause !== undefined && texts.length < SHOWN_CAUSES; ) {
    texts.push(cause instanceof Error ? String(cause) : messageOf(cause))
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return texts.join(': ')
}

const unreadable = (error: unknown): string => `[unreadable: ${messageOf(error)}]`

/** Deeper than anything that a person reads; toJSON may return a new object without an end. */
const MAX_DEPTH = 20

function plain(value: unknown, around: readonly object[]): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (around.includes(value)) return '[circular]'
  if (around.length >= MAX_DEPTH) return '[too deep]'
  const within = [...around, value]
  try {
    const json: unknown = Reflect.get(value, 'toJSON')
    if (typeof json === 'function') return plain(Reflect.apply(json, value, []), within)
  } catch (error) {
    return withoutJson(value, within, error)
  }
  try {
    const told = plainObject(value)
    if (told !== value) return plain(told, within)
    if (Array.isArray(value)) return value.map((item) => plain(item, within))
    return plainMembers(value, within)
  } catch (error) {
    return unreadable(error)
  }
}

/** What has members is told by them if its toJSON throws. */
function withoutJson(value: object, within: readonly object[], error: unknown): unknown {
  const members = plainMembers(value, within)
  return Object.keys(members).length > 0 ? members : unreadable(error)
}

/** Without functions, which JSON has not: the one that throws as toJSON would be called again. */
function plainMembers(value: object, within: readonly object[]): Record<string, unknown> {
  const fields = membersOf(value).filter(([, member]) => typeof member !== 'function')
  return Object.fromEntries(fields.map(([name, member]) => [name, plain(member, within)]))
}
