import { ServoError } from '../../lib/error.ts'
import type { HeldLease } from '../../ports/lease.ts'

/** What a leader asks before it acts. */
export type Leading = Pick<HeldLease, 'isHeld' | 'confirm'>

/** Throws `deposed` if another process leads now. Costs nothing while the lease is held for sure. */
export async function checkLeads(lease: Leading | undefined): Promise<void> {
  if (lease === undefined || lease.isHeld || (await lease.confirm())) return
  throw deposed()
}

export function deposed(): ServoError {
  return new ServoError('conflict', 'deposed', 'another process leads this project now', {
    hint: 'Ask that one. What was asked of this one and not acknowledged may or may not have been written.',
  })
}
