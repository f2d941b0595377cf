import type { StoredFile } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { MISSING, unlike } from '../check/value-check.ts'
import type { FileContent } from '../files/content.ts'
import type { Damage } from '../ledger/read-segment.ts'
import type { BackupTarget } from './backup-target.ts'
import type { LedgerCopy } from './ledger-copy.ts'

export interface ValueCopyOptions {
  readonly from: ObjectStore
  readonly target: BackupTarget
  readonly ledger: LedgerCopy
  /** The folder of the workspace. */
  readonly root: string
}

export interface CopiedValues {
  /** Values of which neither the original nor the backup has what was stored. */
  readonly lost: Damage[]
  /** Values that the original has lost, and the backup keeps. */
  readonly kept: Damage[]
}

/**
 * Copies the values that the ledger keeps, each only if it is what its event says. A value is deleted after its removal is on record: if
 * one is not there, the ledger is taken up to a later moment, and only what that one still keeps is missing.
 */
export async function copyValues(options: ValueCopyOptions): Promise<CopiedValues> {
  const { target, ledger, root } = options
  const found: CopiedValues = { lost: [], kept: [] }
  const done = new Set<string>()
  const missed = new Set<string>()
  for (let isOver = false; !isOver; ) {
    isOver = true
    for (const file of ledger.values.kept()) {
      if (done.has(file.path)) continue
      const damage = await takeValue(options, file)
      if (damage?.what === MISSING && !missed.has(file.path)) {
        missed.add(file.path)
        isOver = false
        continue
      }
      done.add(file.path)
      const path = `${root}${file.path}`
      if (damage === undefined) continue
      if (damage.isKept) found.kept.push({ path, message: `${path} ${damage.what}; the backup keeps the copy that it has` })
      else found.lost.push({ path, message: `${path} ${damage.what}; run its asset again` })
    }
    if (!isOver) await ledger.take()
  }
  for (const file of ledger.values.removed()) target.leave(`${root}${file.path}`)
  return found
}

/** What is wrong with a value in the original; undefined if nothing is, and then the backup has it. */
async function takeValue(
  { from, target, root }: ValueCopyOptions,
  file: StoredFile,
): Promise<{ readonly what: string; readonly isKept: boolean } | undefined> {
  const path = `${root}${file.path}`
  const size = await from.size(path)
  const wrong = size === undefined ? MISSING : unlike(file, { bytes: size })
  const expected = contentIn(target.before(path), file)
  if (expected !== undefined && (await target.keep(path, expected)))
    return wrong === undefined ? undefined : { what: wrong, isKept: true }
  if (wrong !== undefined) return { what: wrong, isKept: false }
  const copying = await target.copy(path, contentIn(undefined, file))
  if (copying === 'copied') return undefined
  return { what: copying === 'missing' ? MISSING : (unlike(file, copying.differs) ?? MISSING), isKept: false }
}

/** The content that the event of a value names. Of events of earlier versions, what the backup before has is right. */
function contentIn(before: FileContent | undefined, { bytes, sha256 }: StoredFile): FileContent | undefined {
  if (bytes === undefined || sha256 === undefined) return before?.bytes === (bytes ?? before?.bytes) ? before : undefined
  return { bytes, sha256 }
}
