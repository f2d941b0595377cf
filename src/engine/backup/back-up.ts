import { toIso } from '../../lib/time.ts'
import type { Registry } from '../../model/event.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type Leading, storeOfLeader } from '../ledger/leading.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { numberOf, Paths, type Scope } from '../paths.ts'
import { keptFolders, LISTS, newRecord, writeList, writeRecord } from './backup-record.ts'
import { BackupTarget, copierOfLeader, type FileCopier } from './backup-target.ts'
import { type CopiedState, copyState, type FileBesides } from './copy-state.ts'
import { type BackedUpFile, placeInBackup } from './file-list.ts'
import { keptFrom } from './kept-files.ts'
import { recordedStore } from './recorded-store.ts'
import { showManifest } from './show-manifest.ts'

export interface BackUpOptions {
  readonly from: ObjectStore
  readonly to: ObjectStore
  readonly files: FileCopier
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Clock
  readonly besides: readonly FileBesides[]
  /** Also removes values that were removed in the original, and logs that are no longer there. */
  readonly prune: boolean
  /** Checks the new backup, before it takes the place of the one before; throws if it is damaged. Without it, nothing is read back. */
  readonly check?: (backup: ObjectStore) => Promise<void>
  /** Checked before every write: a process that was stopped may wake up when another has made a newer backup. */
  readonly lease?: Leading
}

export interface BackupReport extends Omit<CopiedState, 'kept' | 'lost'> {
  readonly copied: { readonly files: number; readonly bytes: number }
  /** Files that were there already. */
  readonly kept: number
  readonly removed: number
  /** Files that were read back; null if they were not to be checked. */
  readonly checked_files: number | null
  /** Files of the backup that were damaged, and were copied again. */
  readonly mended: readonly string[]
  /** Values that are damaged or missing in the original. */
  readonly problems: readonly Damage[]
}

/**
 * Backs up a workspace that may be in use. The new backup counts from the moment at which its record is there. Until then nothing is
 * removed and nothing replaced that the record before leads to, except what is damaged: it can be restored at any moment.
 */
export async function backUp(options: BackUpOptions): Promise<BackupReport> {
  const { from, scope, registry, clock, besides, prune, check, lease } = options
  const to = storeOfLeader(options.to, lease)
  const kept = await keptFrom(to, scope)
  const target = new BackupTarget(to, copierOfLeader(options.files, lease), kept.files)
  const state = await copyState({ from, target, before: kept, scope, registry, besides, prune })
  const unmended = check === undefined ? [] : await mend(target, new Paths(scope))
  await check?.(recordedStore(to, target.named.values()))
  const lost = [...state.lost, ...unmended]
  const list = await writeList(to, { files: [...target.named.values()], lost })
  const { manifest, segments, last_segment } = state
  await writeRecord(to, { ...newRecord(scope), made_at: toIso(clock.now()), manifest, segments, last_segment, list })
  const paths = new Paths(scope)
  await showManifest(to, paths, manifest)
  const removed = await sweep({ to, paths, prune, besides }, { list: list.path, manifest, files: target.named.values() })
  return {
    manifest,
    segments,
    last_segment,
    copied: target.copied,
    kept: target.kept,
    removed,
    checked_files: check === undefined ? null : target.named.size,
    mended: [...kept.damaged, ...target.mended],
    problems: [...state.kept, ...lost],
  }
}

/** Copies again what is damaged in the backup. Returns what may be missing, values and logs, that the original does not have as they were. */
async function mend(target: BackupTarget, paths: Paths): Promise<Damage[]> {
  const unmended: Damage[] = []
  const needed = [paths.ledger, paths.archives, paths.manifests, paths.state]
  const grown = keptFolders(paths)
  for await (const file of target.damaged()) {
    const { path } = file
    if ((await target.copy(path, file)) === 'copied') continue
    // Damaged tables and segments are named by who checks the backup: without them it is none.
    if (needed.some((folder) => path.startsWith(folder))) continue
    target.leave(path)
    // A log may have grown.
    if (grown.some((folder) => path.startsWith(folder)) && (await target.copy(path)) === 'copied') continue
    unmended.push({ path, message: `${path} is damaged in the backup, and the project has no whole copy of it` })
  }
  await target.settle()
  return unmended
}

interface SweepOptions {
  readonly to: ObjectStore
  readonly paths: Paths
  readonly prune: boolean
  readonly besides: readonly FileBesides[]
}

/** Removes what the record does not lead to: what only earlier backups had, and what interrupted ones left. */
async function sweep(
  { to, paths, prune, besides }: SweepOptions,
  now: { readonly list: string; readonly manifest: number; readonly files: Iterable<BackedUpFile> },
): Promise<number> {
  const needed = new Set([now.list, ...[...now.files].map(placeInBackup)])
  const folders = [LISTS, paths.ledger, paths.archives, paths.manifests, paths.state, ...keptFolders(paths)]
  // Without `prune`, values that were removed stay for whoever looks for them. No restore takes them.
  if (prune) folders.push(`${paths.root}data/`)
  let removed = 0
  const remove = async (folder: string, isKept: (path: string) => boolean): Promise<void> => {
    for await (const { path } of to.list(folder)) {
      if (needed.has(path) || isKept(path)) continue
      await to.delete(path)
      removed += 1
    }
  }
  for (const folder of folders) await remove(folder, () => false)
  await remove(paths.boundaries, (path) => numberOf(path) >= now.manifest)
  for (const { path } of besides) await remove(path.slice(0, path.lastIndexOf('/') + 1), (each) => !each.startsWith(path))
  return removed
}
