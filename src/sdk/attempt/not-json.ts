/** What in a value JSON cannot hold. */
export interface Misfit {
  /** `value.rows[3].at` */
  readonly path: string
  /** `a Date` */
  readonly what: string
  /** What to return instead. */
  readonly instead: string
}

/** As deep as JSON is written. */
const MAX_DEPTH = 64

/** Finds the first thing in a value that could not be read back as it was; nothing if all of it can. */
export function findMisfit(value: unknown, path = 'value', above: readonly object[] = []): Misfit | undefined {
  const misfit = (what: string, instead: string): Misfit => ({ path, what, instead })
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : misfit(`the number ${value}`, 'Return null, or a number that is finite')
  if (typeof value === 'string')
    return value.isWellFormed() ? undefined : misfit('text with half a surrogate pair', `Return ${path}.toWellFormed()`)
  if (typeof value === 'boolean' || value === null) return undefined
  if (typeof value === 'bigint') return misfit('a bigint', `Return String(${path}), or Number(${path}) if it is small enough`)
  if (value === undefined) return misfit('undefined', 'Return null')
  if (typeof value !== 'object') return misfit(`a ${typeof value}`, 'Return the data instead')
  if (above.includes(value)) return misfit('an object that contains itself', 'Return an id in its place')
  if (above.length >= MAX_DEPTH) return misfit(`deeper than ${MAX_DEPTH} levels`, 'Return a flatter structure')
  const within = [...above, value]
  if (Array.isArray(value)) {
    // Also the places of a list that were never set.
    for (let i = 0; i < value.length; i++) {
      const found = findMisfit(value[i], `${path}[${i}]`, within)
      if (found !== undefined) return found
    }
    return undefined
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return madeByClass(value, path)
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__')
      return { path: `${path}["__proto__"]`, what: 'a key that JSON must not have', instead: 'Rename it' }
    // A member that is undefined is left out, and reads the same.
    const found = member === undefined ? undefined : findMisfit(member, memberPath(path, name), within)
    if (found !== undefined) return found
  }
  return undefined
}

const memberPath = (path: string, name: string): string =>
  /^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(name) ? `${path}.${name}` : `${path}[${JSON.stringify(name)}]`

function madeByClass(value: object, path: string): Misfit {
  if (value instanceof Date) return { path, what: 'a Date', instead: `Return ${path}.toISOString()` }
  if (value instanceof Map) return { path, what: 'a Map', instead: `Return Object.fromEntries(${path})` }
  if (value instanceof Set) return { path, what: 'a Set', instead: `Return [...${path}]` }
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value))
    return { path, what: 'bytes', instead: 'Return text: base64, for example' }
  const name = value.constructor?.name
  return {
    path,
    what: name ? `an instance of ${name}` : 'an object of a class',
    instead: `Return a plain object: { ...${path} }`,
  }
}
