import { ServoError } from '../lib/error.ts'

/** The value of every dimension of a partition, by the name of the dimension. */
export type PartitionValues = Readonly<Record<string, string>>

/**
 * The one text of a partition with several dimensions: `date=2025-01-15,region=eu`. Names are sorted, and both sides are
 * percent-encoded, so that no value can imitate another partition.
 */
export function writeKey(values: PartitionValues): string {
  return Object.keys(values)
    .sort()
    .map((name) => `${encode(name)}=${encode(values[name] ?? '')}`)
    .join(',')
}

/**
 * The values in such a text. Any order of the dimensions is understood, and a character that is written plainly where we
 * would have encoded it; `writeKey` of the result is the canonical text. An error gives an example with the names of the dimensions, if known.
 */
export function readKey(text: string, names?: readonly string[]): PartitionValues {
  const values = new Map<string, string>()
  for (const part of text.split(',')) {
    const equals = part.indexOf('=')
    if (equals < 1) throw badKey(text, `"${part}" does not have the form dimension=value`, names)
    const name = decode(part.slice(0, equals), text)
    if (values.has(name)) throw badKey(text, `it has the dimension ${name} twice`, names)
    values.set(name, decode(part.slice(equals + 1), text))
  }
  return Object.fromEntries(values)
}

/**
 * The name of the partitions from one to another: `2025-01-01..2025-01-31`, or of several dimensions the same in those that
 * differ, `date=2025-01-01..2025-01-31,region=eu`.
 */
export function rangeKey(first: string, last: string, several: boolean): string {
  if (first === last) return first
  if (!several) return `${first}..${last}`
  const [from, to] = [readKey(first), readKey(last)]
  const between = Object.entries(from).map(([name, value]) => [name, value === to[name] ? value : `${value}..${to[name]}`])
  return writeKey(Object.fromEntries(between))
}

/** The canonical text of a partition of these dimensions, whichever way it was written. */
export function keyOfDimensions(names: readonly string[], asked: string | PartitionValues): string {
  return writeKey(valuesByDimension(names, asked))
}

/** The values of exactly these dimensions. */
export function valuesByDimension(names: readonly string[], asked: string | PartitionValues): PartitionValues {
  const text = typeof asked === 'string' ? asked : Object.keys(asked).join(', ')
  if (typeof asked === 'string' && !asked.includes('='))
    throw badKey(asked, `it is a single key, but these partitions have the dimensions ${names.join(', ')}`, names)
  const values = typeof asked === 'string' ? readKey(asked, names) : asked
  const unknown = Object.keys(values).find((name) => !names.includes(name))
  if (unknown !== undefined) throw badKey(text, `unknown dimension ${unknown}; the dimensions are ${names.join(', ')}`, names)
  const missing = names.find((name) => !Object.hasOwn(values, name))
  if (missing !== undefined) throw badKey(text, `the dimension ${missing} is missing`, names)
  return values
}

/** Text that percent-encoding does not change; most keys are such. */
const plain = /^[\w.!~*'()-]*$/

function encode(text: string): string {
  if (plain.test(text)) return text
  if (text.isWellFormed()) return encodeURIComponent(text)
  throw badKey(text.toWellFormed(), 'it contains half a surrogate pair, which UTF-8 cannot encode')
}

function decode(text: string, whole: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    throw badKey(whole, `"${text}" is not percent-encoded text; a percent sign itself is written %25`)
  }
}

function badKey(text: string, why: string, names: readonly string[] = ['date', 'region']): ServoError {
  const example = [...names].sort().map((name) => `${encodeURIComponent(name)}=…`)
  return new ServoError(
    'invalid',
    'bad_partition_key',
    `${JSON.stringify(text.slice(0, 200))} is not a partition key: ${why}`,
    {
      hint: `Write ${example.join(',')} with percent-encoded values.`,
    },
  )
}
