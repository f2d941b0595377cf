import type { StoredFile } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { contentOf } from '../files/content.ts'
import type { Findings } from './findings.ts'
import type { StoredValues } from './stored-values.ts'

export interface CheckedValues {
  /** Values that are there and match their checksum. */
  readonly checked: number
  /** Values that are there, and were recorded without a checksum. */
  readonly not_checked: number
  /** Values that were removed by a rule or by a user. */
  readonly removed: number
  /** Those of them whose files are still there. Nobody reads them, and the next pass deletes them. */
  readonly not_deleted: number
  /** Values that are not there, and may have been removed: a part of the ledger that may tell of it cannot be read. */
  readonly missing_or_removed: number
}

/** Checks whether the files of values are what was written. */
export async function checkValues(
  values: StoredValues,
  store: ObjectStore,
  root: string,
  findings: Findings,
  isLedgerWhole: boolean,
): Promise<CheckedValues> {
  let checked = 0
  let not_checked = 0
  let removed = 0
  let not_deleted = 0
  let missing_or_removed = 0
  for (const file of values.removed()) {
    removed += 1
    if ((await store.size(`${root}${file.path}`)) !== undefined) not_deleted += 1
  }
  for (const file of values.kept()) {
    const path = `${root}${file.path}`
    if (!isLedgerWhole && (await store.size(path)) === undefined) {
      missing_or_removed += 1
      continue
    }
    const damage = await damageOf(store, path, file)
    if (damage !== undefined) findings.report(path, `${path} ${damage}; ${REMEDY}`)
    else if (file.sha256 === undefined) not_checked += 1
    else checked += 1
  }
  return { checked, not_checked, removed, not_deleted, missing_or_removed }
}

/** Nothing can make a value again but the code that made it. */
const REMEDY = 'restore it from a backup, or run its asset again'

async function damageOf(store: ObjectStore, path: string, file: StoredFile): Promise<string | undefined> {
  const size = await store.size(path)
  if (size === undefined) return MISSING
  if (file.sha256 === undefined || (file.bytes !== undefined && file.bytes !== size)) return unlike(file, { bytes: size })
  const content = await contentOf(store, path)
  return content === undefined ? MISSING : unlike(file, content)
}

export const MISSING = 'is missing, but an attempt has stored it'

/** How the content of a file differs from what its event says; undefined if it does not, as far as both are known. */
export function unlike(file: StoredFile, content: { readonly bytes: number; readonly sha256?: string }): string | undefined {
  const { bytes = content.bytes, sha256 = content.sha256 } = file
  if (content.bytes !== bytes) return `is not the value that was stored: it has ${content.bytes} bytes instead of ${bytes}`
  if (content.sha256 === undefined || content.sha256 === sha256) return undefined
  return `is not the value that was stored: its SHA-256 is ${content.sha256} instead of ${sha256}`
}
