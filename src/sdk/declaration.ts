import { assert } from '../lib/assert.ts'

/**
 * Marks the values that `asset`, `table`, `command`, `source` and their like return. The symbol is of the global registry,
 * so that two copies of the package in one process still understand each other.
 */
const declaration = Symbol.for('servo.definition')

/** A declaration by an author: an asset, a schedule, a sensor, a resource or an IO. The definition on record is made from it. */
export interface Declaration<Kind extends string = string, Options = unknown> {
  readonly kind: Kind
  /** Asset key, or name of a schedule, sensor, resource or IO. */
  readonly name: string
  /** The options as the author wrote them. */
  readonly options: Options
  /** Where the author wrote it: absolute path and line. */
  readonly file: string | undefined
  readonly line: number | undefined
}

export function withDeclaration<T extends object>(value: T, declared: Declaration): T {
  Object.defineProperty(value, declaration, { value: declared })
  return value
}

export function declarationOf(value: unknown): Declaration | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { [declaration]?: Declaration })[declaration]
}

/** The declaration in a value that is known to have one. */
export function knownDeclaration(value: object): Declaration {
  const found = declarationOf(value)
  assert(found !== undefined, 'a value without a declaration was taken for one with it')
  return found
}

/** Its options. Their type follows from the kind of the declaration, which the caller knows. */
export function optionsOf<Options>(value: object): Options {
  return knownDeclaration(value).options as Options
}
