import { ServoError } from '../../lib/error.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { stateMoved } from '../../ports/state-moved.ts'

/** The part of its lease that a leader checks before it acts, and with which it keeps what it published. */
export type Leading = Pick<HeldLease, 'isHeld' | 'confirm'> & Partial<Pick<HeldLease, 'kept' | 'keep' | 'wasMoved'>>

/**
 * True while this process leads. Check it right before every act: a process may have been paused for any time, at any point, even
 * during the check. Costs nothing while the lease is certainly held.
 */
export async function leads(lease: Leading): Promise<boolean> {
  while (!lease.isHeld) if (!(await lease.confirm())) return false
  return true
}

/** Throws if another process leads now, or the state was moved. Without a lease it never throws. */
export async function checkLeads(lease: Leading | undefined): Promise<void> {
  if (lease === undefined || lease.isHeld || (await leads(lease))) return
  throw lostLead(lease)
}

/** Why a process that led does so no longer. */
export const lostLead = (lease: Leading | undefined): ServoError => (lease?.wasMoved ? stateMoved() : deposed())

function deposed(): ServoError {
  return new ServoError('conflict', 'deposed', 'another process leads this project now', {
    hint: 'Send the request to that process. Requests to this one that were not acknowledged may or may not have been written.',
  })
}

/** A store that checks the lease before each write, for a leader that writes in many places. */
export function storeOfLeader(store: ObjectStore, lease: Leading | undefined): ObjectStore {
  return {
    async create(path, bytes) {
      await checkLeads(lease)
      return await store.create(path, bytes)
    },
    async put(path, bytes) {
      await checkLeads(lease)
      await store.put(path, bytes)
    },
    async delete(path) {
      await checkLeads(lease)
      await store.delete(path)
    },
    get: (path) => store.get(path),
    getRange: (path, start, length) => store.getRange(path, start, length),
    size: (path) => store.size(path),
    list: (prefix, options) => store.list(prefix, options),
    folders: (prefix) => store.folders(prefix),
  }
}
