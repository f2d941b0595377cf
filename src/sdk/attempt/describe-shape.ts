import { counted } from '../../lib/text/counted.ts'

/**
 * What a value is, in a few words and without what is in it. An error message goes into the ledger and into logs, where nothing is ever
 * removed, and a value may be large or private.
 */
export function describeShape(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'string') return `text of ${counted(value.length, 'character')}`
  if (typeof value !== 'object') return `a ${typeof value}`
  if (Array.isArray(value)) return `a list of ${counted(value.length, 'item')}`
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null)
    return `an object with ${counted(Object.keys(value).length, 'member')}`
  const { name } = Object(value).constructor ?? {}
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,59}$/.test(name)
    ? `an object of the class ${name}`
    : 'an object of a class'
}
