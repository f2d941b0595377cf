// Checks of small files that every command reads. A command that only asks the server needs nothing else of zod, which takes longer
// to load than the command takes to run.

import { isObject } from './is-object.ts'

/** True if a value that came from outside has this type. */
export type Shape<T> = (value: unknown) => value is T
export type Shaped<S> = S extends Shape<infer T> ? T : never

export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean'
export const isInteger = (value: unknown): value is number => Number.isSafeInteger(value)
export const isText = (value: unknown): value is string => typeof value === 'string'

export const textLike =
  (pattern: RegExp): Shape<string> =>
  (value): value is string =>
    isText(value) && pattern.test(value)

export const orNull =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (value): value is T | null =>
    value === null || shape(value)

export const orAbsent =
  <T>(shape: Shape<T>): Shape<T | undefined> =>
  (value): value is T | undefined =>
    value === undefined || shape(value)

export const eitherText =
  <T extends string>(...names: readonly T[]): Shape<T> =>
  (value): value is T =>
    names.some((name) => name === value)

/** An object with these fields; it may have others. */
export const objectOf = <F extends Readonly<Record<string, Shape<unknown>>>>(
  fields: F,
): Shape<{ readonly [K in keyof F]: Shaped<F[K]> }> => {
  const checks = Object.entries(fields)
  return (value): value is { readonly [K in keyof F]: Shaped<F[K]> } =>
    isObject(value) && checks.every(([name, shape]) => shape(value[name]))
}
