import { z } from 'zod'

/** All levels of a value, not to be changed: what is answered may be part of the state. */
type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T

/** What a schema of an answer describes. Types of answers are made from their schemas, so that there is one declaration. */
export type Told<S extends z.ZodType> = Frozen<z.output<S>>

/** The schemas that have a name of their own in the OpenAPI document. */
export const answerNames = z.registry<{ id: string }>()

/** Gives a schema a name in the OpenAPI document. Whatever is made from it, by `extend` or `omit`, has none. */
export function named<S extends z.ZodType>(name: string, schema: S): S {
  answerNames.add(schema, { id: name })
  return schema
}

/** A schema whose type is declared elsewhere, and in more detail than readers of an answer need. */
export const typedAs = <T>(schema: z.ZodType): z.ZodType<T> => schema as z.ZodType<T>

/** A moment as answers have it: ISO 8601 in UTC. */
export const moment = z.iso.datetime({ offset: false })

export const whole = z.int()

/** JSON of any shape, as its author reported it. */
export const anything = typedAs<NonNullable<unknown>>(z.unknown())

/** What a list has beside its entries. */
export const nextCursor = {
  next_cursor: z.string().nullable().describe('The `cursor` of the next page; null on the last one.'),
}

/** What every accepted change is answered with. */
export const acceptance = {
  message: z.string().describe('What happened, in words.'),
  accepted_event_id: z.string().nullable().describe('The event on record; null when nothing was new.'),
  accepted_at: moment,
  correlation_id: z.string().describe('The id of the request.'),
}
