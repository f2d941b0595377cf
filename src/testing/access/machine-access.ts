import type { Access } from '../../api/access/access.ts'
import { tokenAccess } from '../../api/tokens/token-access.ts'
import { ServoError } from '../../lib/error.ts'

/** Knows the token of a machine and no other. */
export const machineAccess = (token: string): Access =>
  tokenAccess(token, {
    bearer: async () => {
      throw new ServoError('invalid', 'unauthenticated', 'unknown token', { hint: 'Send the token of the machine.' })
    },
  })
