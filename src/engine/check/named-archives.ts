import { isServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { FileRef } from '../files/file-ref.ts'
import { readAnyArchive } from '../ledger/archive-file.ts'
import { archivesOf, type Manifest } from '../manifest/manifest.ts'
import { soundEntries } from '../manifest/page-list.ts'

/** What a manifest says of the archives that it names, by path, as far as its list can be read. */
export async function namedArchives(store: ObjectStore, manifest: Manifest | undefined): Promise<Map<string, FileRef>> {
  const named = new Map<string, FileRef>()
  if (manifest === undefined) return named
  for await (const found of soundEntries(store, archivesOf(manifest), () => undefined))
    if ('entry' in found) named.set(found.entry.path, found.entry)
  return named
}

/** An archive as it lies there, judged by itself and by what the manifest says of it. */
export type JudgedArchive =
  /** Whole: it says its name, and is what the manifest names, or the manifest does not name it. */
  | { readonly kind: 'whole'; readonly name: string }
  /** Whole, and not the one that the manifest names: of another project, or of another time. */
  | { readonly kind: 'other'; readonly name: string }
  | { readonly kind: 'damaged' }

export async function judgeArchive(
  path: string,
  bytes: Uint8Array,
  namedAt: (name: string) => FileRef | undefined,
): Promise<JudgedArchive> {
  try {
    const name = await readAnyArchive(path, bytes)
    const named = namedAt(name)
    return { kind: named === undefined || named.sha256 === sha256(bytes) ? 'whole' : 'other', name }
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    return { kind: 'damaged' }
  }
}

export const otherArchive = (path: string): string =>
  `${path} is not the archive that the manifest names, but another of that name, perhaps of another project; restore it from a backup`
