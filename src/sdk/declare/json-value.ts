import type { Mistake } from '../mistake.ts'
import type { Io } from './io.ts'

/** Deeper than anything that a person writes out as a type; types that contain themselves end here. */
type Deepest = 8

type IsUnknown<T> = unknown extends T ? true : false

/**
 * What in a value JSON cannot hold, in words: `value.rows[].at is a Date`. Never if there is nothing. It is about types: that a
 * number is NaN, or that an object was made by a class, shows when the body runs.
 */
export type NotJson<T, Path extends string = 'value', Depth extends readonly 0[] = []> =
  IsUnknown<T> extends true
    ? never
    : Depth['length'] extends Deepest
      ? never
      : T extends string | number | boolean | null
        ? never
        : T extends undefined
          ? Depth extends readonly []
            ? never
            : `${Path} may be undefined: write null, or make it optional`
          : T extends Date
            ? `${Path} is a Date: return its toISOString()`
            : T extends bigint
              ? `${Path} is a bigint: return String(value) or Number(value)`
              : T extends ReadonlyMap<unknown, unknown>
                ? `${Path} is a Map: return Object.fromEntries(map)`
                : T extends ReadonlySet<unknown>
                  ? `${Path} is a Set: return an array, [...set]`
                  : T extends ArrayBuffer | ArrayBufferView
                    ? `${Path} is bytes: give the asset an io`
                    : T extends symbol | ((...args: never[]) => unknown)
                      ? `${Path} is a function: return plain data`
                      : T extends readonly (infer Item)[]
                        ? NotJson<Item, `${Path}[]`, [...Depth, 0]>
                        : T extends object
                          ? {
                              [Name in keyof T & string]-?: NotJson<
                                Partial<Pick<T, Name>> extends Pick<T, Name> ? Exclude<T[Name], undefined> : T[Name],
                                `${Path}.${Name}`,
                                [...Depth, 0]
                              >
                            }[keyof T & string]
                          : never

/** A value that JSON cannot hold needs an `io` that knows how to write it. The compiler prints `Why` if there is none. */
export type NeedsIo<Why extends string, Value> = { io: Io<Value> } | { run: Mistake<Why>; io?: never }

/** What the options of an asset need besides, by the value that its body returns. */
// biome-ignore lint/suspicious/noConfusingVoidType: a body that returns nothing is inferred as void
export type Keepable<Value> = [Value] extends [void]
  ? unknown
  : [NotJson<Value>] extends [never]
    ? unknown
    : NeedsIo<NotJson<Value>, Value>
