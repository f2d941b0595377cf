import { z } from 'zod'

/** A change may name the state that it was decided on; if the state is another by now, it is refused. */
export const expectedVersion = z.object({
  expected_state_version: z
    .string()
    .regex(/^\d{1,10}$/, 'must be a whole number, such as the state_version that was shown')
    .transform(Number)
    .optional(),
})
