import type { Leading } from '../../engine/ledger/leading.ts'

/** True while this process leads. Asked right before every act: a process may have been paused for any time, at any place. */
export async function leads(lease: Leading): Promise<boolean> {
  while (!lease.isHeld) if (!(await lease.confirm())) return false
  return true
}
