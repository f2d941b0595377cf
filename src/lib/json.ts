import { ServoError } from './error.ts'

/** Deep enough for any metadata a person writes; shallow enough that recursion never exhausts the stack. */
const MAX_DEPTH = 64

/**
 * Canonical JSON: keys sorted by UTF-16 code unit, no white space, `undefined` members left out. The same value always
 * gives the same bytes, in whatever order its members were set.
 */
export function canonicalJson(value: unknown): string {
  return write(value, 0)
}

function write(value: unknown, depth: number): string {
  switch (typeof value) {
    case 'string':
      return writeString(value)
    case 'number':
      if (!Number.isFinite(value)) throw notJson(`the number ${value}`)
      return String(value)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'object':
      return value === null ? 'null' : writeStructure(value, depth)
    default:
      throw notJson(`a value of type ${typeof value}`)
  }
}

function writeStructure(value: object, depth: number): string {
  if (depth >= MAX_DEPTH) {
    throw new ServoError('invalid', 'json_too_deep', `JSON nested deeper than ${MAX_DEPTH} levels`, {
      hint: 'Flatten the value, or store it elsewhere and pass a reference.',
    })
  }
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]'
    let text = `[${write(value[0], depth + 1)}`
    for (let i = 1; i < value.length; i++) text += `,${write(value[i], depth + 1)}`
    return `${text}]`
  }
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    throw notJson(`an instance of ${prototype.constructor?.name ?? 'a class'}`)
  let text = '{'
  for (const key of sortedKeys(value)) {
    const member = (value as Record<string, unknown>)[key]
    if (member === undefined) continue
    if (text.length > 1) text += ','
    text += (names.get(key) ?? nameOf(key)) + write(member, depth + 1)
  }
  return `${text}}`
}

/** Names of members as they are written, with the colon. Most values have the names of those before them. */
const names = new Map<string, string>()
/** Names that people choose must not fill the memory. */
const MOST_NAMES = 1_000

function nameOf(key: string): string {
  // A `__proto__` member survives here, but many readers drop it or worse, so it is refused.
  if (key === '__proto__')
    throw new ServoError('invalid', 'json_proto_key', 'the key "__proto__" is not allowed in JSON', {
      hint: 'Rename the key.',
    })
  const name = `${writeString(key)}:`
  if (names.size < MOST_NAMES) names.set(key, name)
  return name
}

/** The names that objects had lately and the same sorted, by the first of them and how many they are. */
const shapes = new Map<string, (Shape | undefined)[]>()
const MOST_SORTED_NAMES = 64

interface Shape {
  readonly keys: readonly string[]
  readonly sorted: readonly string[]
}

/** Most objects have the names of one before them, and comparing those for being the same is quicker than sorting. */
function sortedKeys(value: object): readonly string[] {
  const keys = Object.keys(value)
  const { length } = keys
  const first = keys[0]
  if (first === undefined || length < 2) return keys
  const known = shapes.get(first)?.[length]
  if (known?.keys.every((key, i) => key === keys[i])) return known.sorted
  const sorted = keys.toSorted()
  if (length > MOST_SORTED_NAMES) return sorted
  let alike = shapes.get(first)
  if (alike === undefined) {
    if (shapes.size >= MOST_NAMES) return sorted
    alike = []
    shapes.set(first, alike)
  }
  alike[length] = { keys, sorted }
  return sorted
}

/** Printable ASCII without quote and backslash: most text, and written as it stands. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** Lone surrogates have no UTF-8 form: they would come back as other characters than were written. */
function writeString(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  if (!text.isWellFormed()) throw notJson('text with half a surrogate pair')
  return JSON.stringify(text)
}

function notJson(what: string): ServoError {
  return new ServoError('invalid', 'not_json', `${what} cannot be written as JSON`, {
    hint: 'Use null, booleans, finite numbers, text, arrays and plain objects.',
  })
}

/** JSON as the value it stands for, and any other text as it is. */
export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
