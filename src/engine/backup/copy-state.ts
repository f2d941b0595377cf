import { sha256 } from '../../lib/hash.ts'
import type { Registry } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksumMismatch, type FileRef, fileMissing } from '../files/file-ref.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { archivesOf, directFiles, type Manifest } from '../manifest/manifest.ts'
import { listPages, readEntries } from '../manifest/page-list.ts'
import { encodeManifest, newestManifest } from '../manifest/stored-manifests.ts'
import { Paths, type Scope } from '../paths.ts'
import { keptFolders } from './backup-record.ts'
import type { BackupTarget } from './backup-target.ts'
import type { KeptFiles } from './kept-files.ts'
import { LedgerCopy } from './ledger-copy.ts'
import { type CopiedValues, copyValues } from './value-copy.ts'

/** A file outside the folder of the workspace that belongs to it. */
export interface FileBesides {
  readonly path: string
  /** True if this is what such a file may hold. */
  readonly isSound: (bytes: Uint8Array) => boolean
}

export interface CopyStateOptions {
  readonly from: ObjectStore
  readonly target: BackupTarget
  /** What the backup before has. */
  readonly before: KeptFiles
  readonly scope: Scope
  readonly registry: Registry
  readonly besides: readonly FileBesides[]
  /** Leaves out logs that are no longer there. Without it, the copy keeps what the original has lost. */
  readonly prune: boolean
}

/** What a workspace was like at the moment of the copy. */
export interface CopiedState {
  readonly manifest: number
  readonly segments: number
  readonly last_segment: string | null
  /** Values, and files besides, of which there is no whole copy. */
  readonly lost: readonly Damage[]
  /** Those that only the backup still has. */
  readonly kept: readonly Damage[]
}

/** A publish that removes files meanwhile leaves a newer manifest behind. Readers have a quarter of an hour before that. */
const MANIFESTS_TRIED = 5

/**
 * Copies a workspace that may be in use, so that the copy is a state that the workspace was in: a manifest with all it names, every
 * segment up to one moment, the values that these segments keep, and the logs.
 */
export async function copyState(options: CopyStateOptions): Promise<CopiedState> {
  const { from, target, before, scope, registry, besides } = options
  const paths = new Paths(scope)
  const ledger = new LedgerCopy({ from, target, paths, scope, registry })
  await ledger.checkGrown(before.ledger)
  const others: CopiedValues = { lost: [], kept: [] }
  for (const file of besides) await copyBesides(options, file, others)
  const manifest = await copyTables(options, paths)
  // After the manifest: whatever it has folded is then among the segments.
  await ledger.take()
  const values = await copyValues({ from, target, ledger, root: paths.root })
  for (const folder of keptFolders(paths)) await copyFolder(options, folder)
  await target.settle()
  if (manifest.number > 0) {
    const bytes = encodeManifest(manifest)
    await target.write(paths.manifest(manifest.number), { bytes: bytes.length, sha256: sha256(bytes) }, bytes)
  }
  const [lost, kept] = [
    [...others.lost, ...values.lost],
    [...others.kept, ...values.kept],
  ]
  return { manifest: manifest.number, segments: ledger.segments, last_segment: ledger.last, lost, kept }
}

/** A small file that may have been replaced, but not by nothing, nor by something else. */
async function copyBesides(
  { from, target }: CopyStateOptions,
  { path, isSound }: FileBesides,
  found: CopiedValues,
): Promise<void> {
  const bytes = await from.get(path)
  if (bytes !== undefined && isSound(bytes))
    return await target.write(path, { bytes: bytes.length, sha256: sha256(bytes) }, bytes)
  const what = bytes === undefined ? 'is missing' : 'is damaged'
  if (await target.keep(path)) found.kept.push({ path, message: `${path} ${what}; the backup keeps the copy that it has` })
  else if (bytes !== undefined) found.lost.push({ path, message: `${path} ${what}, and is not in the backup` })
}

/** The newest manifest, after all files that it names. */
async function copyTables({ from, target, scope }: CopyStateOptions, paths: Paths): Promise<Manifest> {
  for (let tried = 1; ; tried++) {
    const manifest = await newestManifest(from, paths, scope)
    const named: string[] = []
    try {
      for await (const ref of filesOf(from, manifest)) {
        named.push(ref.path)
        await copyChecked(target, ref)
      }
      return manifest
    } catch (error) {
      const newest = await newestManifest(from, paths, scope)
      // Garbage collection has removed what an older manifest named.
      if (newest.number === manifest.number || tried === MANIFESTS_TRIED) throw error
      for (const path of named) target.leave(path)
    }
  }
}

async function copyChecked(target: BackupTarget, ref: FileRef): Promise<void> {
  if (await target.keep(ref.path, ref)) return
  const copying = await target.copy(ref.path, ref)
  if (copying === 'copied') return
  throw copying === 'missing'
    ? fileMissing(ref)
    : checksumMismatch(ref, `its SHA-256 is ${copying.differs.sha256} instead of ${ref.sha256}`)
}

/** Whatever is in a folder. A file that has become shorter is damaged, if the backup has it as it was. */
async function copyFolder({ from, target, prune }: CopyStateOptions, folder: string): Promise<void> {
  const there = new Set<string>()
  for await (const { path } of from.list(folder)) {
    there.add(path)
    const size = await from.size(path)
    const known = target.before(path)
    const isKept = known !== undefined && size !== undefined && size <= known.bytes && (await target.keep(path))
    if (!isKept) await target.copy(path)
  }
  if (prune) return
  for (const path of target.pathsBefore(folder)) if (!there.has(path)) await target.keep(path)
}

/** Every file that a manifest needs. */
async function* filesOf(store: ObjectStore, manifest: Manifest): AsyncGenerator<FileRef> {
  yield* directFiles(manifest)
  for (const list of [manifest.history, manifest.order, archivesOf(manifest)])
    yield* listPages<{ publish: number }>(store, list)
  for await (const entry of readEntries(store, manifest.history)) {
    for (const [table, file] of Object.entries(entry.tables)) if (entry.publish >= (manifest.dropped[table] ?? 0)) yield file
  }
  yield* readEntries(store, manifest.order)
}
