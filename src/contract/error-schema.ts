import { z } from 'zod'

/** What is known of an error besides its message. */
const shown = {
  /** The name of its class, such as `TypeError`. */
  type: z.string().nullish(),
  /** Such as `ECONNREFUSED`. */
  code: z.string().nullish(),
  /** The frames that help, those of the author's own files first; or what a program printed of its own stack. */
  stack: z.string().nullish(),
}

/** An error that led to another. `depth` counts from 1; an error with a larger depth led to the last one with a smaller. */
const errorBehind = z.object({
  depth: z.number().int().min(1),
  /** `cause`, or one of the `errors` of an AggregateError. */
  as: z.enum(['cause', 'error']),
  message: z.string(),
  ...shown,
})
export type ErrorBehind = z.infer<typeof errorBehind>

/** What an attempt reports of its error, and what is recorded of it, besides its message. */
export const errorDetail = z.object({ ...shown, causes: z.array(errorBehind).nullish() })
export type ErrorDetail = z.infer<typeof errorDetail>
/** The same on record, where nobody changes it. */
export type RecordedDetail = Omit<ErrorDetail, 'causes'> & { readonly causes?: readonly ErrorBehind[] | null | undefined }
