import { assert } from '../../lib/assert.ts'

/**
 * What is inside the values that `asset`, `table`, `command`, `source` and their like return. Found by a symbol of the global
 * registry, so that two copies of the package in one process still understand each other.
 */
const definition = Symbol.for('servo.definition')

export interface Definition<Kind extends string = string, Options = unknown> {
  readonly kind: Kind
  /** Asset key, or name of a schedule, sensor, resource or IO. */
  readonly name: string
  /** What the author wrote, unchanged. */
  readonly options: Options
  /** Where the author wrote it: absolute path and line. */
  readonly file: string | undefined
  readonly line: number | undefined
}

export function withDefinition<T extends object>(value: T, of: Definition): T {
  Object.defineProperty(value, definition, { value: of })
  return value
}

export function definitionOf(value: unknown): Definition | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { [definition]?: Definition })[definition]
}

/** The definition in a value that is known to have one. */
export function knownDefinition(value: object): Definition {
  const found = definitionOf(value)
  assert(found !== undefined, 'a value without a definition was taken for one')
  return found
}

/** Its options. Their type follows from the kind of the definition, which the caller knows. */
export function optionsOf<Options>(value: object): Options {
  return knownDefinition(value).options as Options
}
