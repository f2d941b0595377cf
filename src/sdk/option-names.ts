import { isObject } from '../lib/is-object.ts'
import { nearest } from '../lib/nearest.ts'
import { invalid } from './invalid.ts'

/** Refuses an option that nobody would read: a misspelled one would do nothing. `owner` is `schedule nightly` and the like. */
export function checkOptionNames(owner: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw invalid('unknown_option', `${owner}: unknown option \`${unknown}\``, optionHint(unknown, known))
}

/** The same for an option that is itself an object of options: `catchup of schedule nightly`. Anything else is for others to refuse. */
export function checkNestedNames(owner: string, value: unknown, known: readonly string[]): void {
  if (isObject(value)) checkOptionNames(owner, value, known)
}

/** The options there are, and the one that was probably meant. */
export function optionHint(unknown: string, known: readonly string[]): string {
  const meant = nearest(unknown, known)
  const all = `Options: ${known.join(', ')}.`
  return meant === undefined ? all : `Did you mean \`${meant}\`? ${all}`
}
