import type { Damage } from '../../engine/ledger/read-segment.ts'
import { ServoError } from '../../lib/error.ts'

/** Damage that a start found and can do without, as a line for people. */
export const damageFound = ({ path, message }: Damage): ServoError =>
  new ServoError('corrupt', 'damage_found', `damage found: ${message}`, {
    hint: 'Run `servo verify` to see all of it, then `servo rebuild`.',
    facts: { path },
  })
