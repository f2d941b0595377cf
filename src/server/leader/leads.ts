import { ServoError } from '../../lib/error.ts'
import type { HeldLease } from '../../ports/lease.ts'

/** Whether this process still leads. Asked right before every act: a process may have been paused for any time, at any place. */
export async function leads(lease: Pick<HeldLease, 'isHeld' | 'confirm'>): Promise<boolean> {
  while (!lease.isHeld) if (!(await lease.confirm())) return false
  return true
}

export const deposed = (): ServoError =>
  new ServoError('conflict', 'deposed', 'another process leads this project now', {
    hint: 'This one stops. Everything it acknowledged is recorded, and the other goes on with it.',
  })
