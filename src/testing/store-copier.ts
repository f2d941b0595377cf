import type { BackUpOptions } from '../engine/backup/back-up.ts'
import type { FileCopier } from '../engine/backup/backup-target.ts'
import { sha256 } from '../lib/hash.ts'
import type { ObjectStore } from '../ports/object-store.ts'

/** Copies objects from any store to any other, through memory. */
export const storeCopier = (from: ObjectStore, to: ObjectStore): FileCopier => ({
  async copy(path, place) {
    const bytes = await from.get(path)
    if (bytes === undefined) return undefined
    const read = { bytes: bytes.length, sha256: sha256(bytes) }
    const target = await place(read)
    if (target !== undefined) await to.put(target, bytes)
    return read
  },
  settle: async () => undefined,
})

/** A backup of one store in another. */
export const backupOf = (
  from: ObjectStore,
  to: ObjectStore,
): Pick<BackUpOptions, 'from' | 'to' | 'files' | 'besides' | 'prune'> => ({
  from,
  to,
  files: storeCopier(from, to),
  besides: [],
  prune: false,
})
