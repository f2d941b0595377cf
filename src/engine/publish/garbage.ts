import { isServoError } from '../../lib/error.ts'
import { HOUR_MS, MINUTE_MS, toMs } from '../../lib/time.ts'
import type { Registry } from '../../model/event.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { FileRef } from '../files/file-ref.ts'
import { allTables } from '../fold/state.ts'
import { checkLeads, type Leading } from '../ledger/leading.ts'
import { directFiles, type HistoryEntry, type Manifest } from '../manifest/manifest.ts'
import { findEntry, type PageList, type PageRef, readEntriesBackwards, readPage } from '../manifest/page-list.ts'
import { boundaryOf, manifestNumbers, readManifest } from '../manifest/stored-manifests.ts'
import { type Layer, numberOf, Paths, type Scope } from '../paths.ts'

export interface GarbageOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Pick<AlarmClock, 'now' | 'monotonic'>
  /** How long a manifest and its files are kept after a newer one, for readers that hold it. Longer than any query takes. */
  readonly graceMs?: number
  /** Nothing is deleted once another process leads. */
  readonly lease?: Leading
  /** How much is deleted at most, and for how long. What is left is found by the next collection. */
  readonly limit?: CollectionLimit | undefined
}

export interface CollectionLimit {
  readonly deletes: number
  readonly ms: number
}

export interface GarbageReport {
  readonly manifests: number
  readonly files: number
  /** The lowest manifest that is kept. */
  readonly boundary: number
}

const DEFAULT_GRACE_MS = 15 * MINUTE_MS

/** Manifests after which it is time to collect, however soon that is. */
const EVERY_MANIFESTS = 64

/**
 * True if a leader should collect garbage once, though it may not have led for long: where commands lead for a moment, one after the other,
 * nobody ever leads for an hour. `found` is the manifest that it began with. Nothing is asked of the store for it: garbage is made by
 * publishing, so it is due if the last publish before this leader was an hour ago, or when numbers pass the next round one.
 */
export function isCollectionDue(found: Manifest, manifest: Manifest, nowMs: number): boolean {
  const { last_processed_at } = found.watermarks
  if (last_processed_at !== null && nowMs - toMs(last_processed_at) >= HOUR_MS) return true
  return Math.floor(manifest.number / EVERY_MANIFESTS) > Math.floor(found.number / EVERY_MANIFESTS)
}

/** What such a leader deletes at most, and for how long: its user waits for it. The next one goes on. */
export const BRIEF_COLLECTION: CollectionLimit = { deletes: 2_000, ms: 1_000 }

/**
 * Removes what no kept manifest names: superseded files, orphans of compactors that died or were overtaken, history
 * past its retention, and old manifests themselves. Safe to run anywhere, at any time, twice, or after a long pause:
 * a later manifest names only files that an earlier one named or that are newer than it, so a stale collector's
 * knowledge is never wrong, only incomplete.
 */
export async function collectGarbage(options: GarbageOptions): Promise<GarbageReport> {
  const { store, scope, clock } = options
  const paths = new Paths(scope)
  const kept: Manifest[] = []
  const dropped: number[] = []
  const passed = await boundaryOf(store, paths)
  const numbers = await manifestNumbers(store, paths)
  const deadline = clock.now() - (options.graceMs ?? DEFAULT_GRACE_MS)
  // Newest first: a manifest is needed for as long as the one after it is younger than the grace period.
  for (const number of numbers.toReversed()) {
    const successor = kept.at(-1)
    if (dropped.length > 0 || number < passed || (successor !== undefined && toMs(successor.published_at) < deadline)) {
      dropped.push(number)
      continue
    }
    // One that is damaged was passed over by the leader, and nobody can read it: it goes when it would have gone.
    const manifest = await readManifest(store, paths, scope, number).catch(unlessDamaged)
    if (manifest !== undefined) kept.push(manifest)
  }
  const oldest = kept.at(-1)
  const newest = kept[0]
  if (oldest === undefined || newest === undefined) return { manifests: 0, files: 0, boundary: 0 }

  await checkLeads(options.lease)
  // The boundary first, durably: a paused compactor that then creates a manifest at a freed number will notice.
  if (dropped.length > 0) await store.create(paths.boundary(oldest.number), new Uint8Array())
  const mayDelete = allowance(options)
  let manifests = 0
  // The oldest first: those that are left are below the boundary.
  for (const number of dropped.toReversed()) {
    if (!mayDelete()) break
    await store.delete(paths.manifest(number))
    manifests += 1
  }
  const files = await collectFiles(options, paths, { kept, newest, mayDelete })
  await collectBoundaries(store, paths, oldest.number)
  return { manifests, files, boundary: oldest.number }
}

/** Asked before each delete. */
function allowance({ limit, clock }: GarbageOptions): () => boolean {
  if (limit === undefined) return () => true
  const until = clock.monotonic() + limit.ms
  let left = limit.deletes
  return () => left-- > 0 && clock.monotonic() < until
}

function unlessDamaged(error: unknown): undefined {
  if (!isServoError(error, 'corrupt')) throw error
}

async function collectFiles(
  { store, registry }: GarbageOptions,
  paths: Paths,
  { kept, newest, mayDelete }: { kept: readonly Manifest[]; newest: Manifest; mayDelete: () => boolean },
): Promise<number> {
  const live = new Set(kept.flatMap((manifest) => [...directFiles(manifest)].map((file) => file.path)))
  let removed = 0
  const sweep = async (
    prefix: string,
    isLive: (path: string) => boolean,
    from = 0,
    after?: string,
    last = newest.publish,
  ): Promise<void> => {
    for await (const { path } of store.list(prefix, after === undefined ? {} : { after })) {
      const publish = numberOf(path)
      // A file beyond the newest publish known here may be about to be named by a manifest. A file without a number is not ours.
      if (!(publish >= from && publish <= last) || isLive(path)) continue
      if (!mayDelete()) return
      await store.delete(path)
      removed += 1
    }
  }

  const pagesOf = {
    pages: (page: PageRef) => readPage<PageRef>(store, page),
    entries: (page: PageRef) => readPage<HistoryEntry>(store, page),
  }
  const swept: readonly Layer[] = ['base', 'l0', 'removed', 'runs']
  const history = await recent(store, newest.history, (entry) => Object.values(entry.tables))
  const day = history.oldest?.sealed_at.slice(0, 10)
  // A file that was merged belongs to readers of the manifests that still name it.
  const isHistory = (path: string): boolean => history.paths.has(path) || live.has(path)
  for (const table of allTables(registry)) {
    for (const layer of swept) await sweep(`${paths.table(table.name)}${layer}/`, (path) => live.has(path))
    if (table.storage.kind !== 'hot' || table.storage.sealedWith === undefined) continue
    const folder = `${paths.table(table.name)}history/`
    const expired = Math.min(...kept.map((manifest) => manifest.dropped[table.name] ?? 0))
    const last = expired > 0 ? await findEntry(newest.history, expired - 1, pagesOf) : undefined
    for await (const { path } of store.list(folder)) {
      if (Number.isNaN(numberOf(path))) continue
      // Files carry the publish that made them: those of the last entry may have been merged when the next one had begun.
      if ((numberOf(path) >= expired && path !== last?.tables[table.name]?.path) || !mayDelete()) break
      await store.delete(path)
      removed += 1
    }
    await sweep(folder, isHistory, history.from, day && `${folder}${day}`)
  }

  const order = await recent(store, newest.order, (entry) => [entry])
  const isOrdered = (path: string): boolean => order.paths.has(path)
  await sweep(`${paths.state}_order/`, isOrdered, order.from, paths.order(order.from, 0))
  await sweep(`${paths.state}_order_pages/`, isOrdered, order.from, paths.page('order', order.from, 0, 0))
  await sweep(`${paths.state}_history_pages/`, isHistory, history.from, paths.page('history', history.from, 0, 0))
  if (newest.archives !== undefined) {
    // Archives are never removed, and their pages go by the numbers of manifests.
    const archives = await recent(store, newest.archives, () => [])
    const after = paths.page('archives', archives.from, 0, 0)
    await sweep(`${paths.state}_archives_pages/`, (path) => archives.paths.has(path), archives.from, after, newest.number)
  }
  return removed
}

interface Recent<E> {
  /** Files of the entries, and pages of the list. */
  readonly paths: ReadonlySet<string>
  /** The oldest publish among them; 0 when this is all there is. */
  readonly from: number
  readonly oldest?: E
}

/** The files that a list has named lately: any other file of that age is an orphan. Earlier collections have found older orphans. */
async function recent<E extends { readonly publish: number; readonly first?: number }>(
  store: ObjectStore,
  list: PageList<E>,
  filesOf: (entry: E) => readonly FileRef[],
): Promise<Recent<E>> {
  const paths = new Set<string>()
  let entries = 0
  for await (const entry of readEntriesBackwards(store, list, (page) => paths.add(page.path))) {
    for (const file of filesOf(entry)) paths.add(file.path)
    entries += 1
    // The publish that this entry begins with may also have closed the one before, whose files and pages are not looked at here.
    if (entries >= RECENT_ENTRIES) return { paths, from: (entry.first ?? entry.publish) + 1, oldest: entry }
  }
  return { paths, from: 0 }
}

/** More than can be added to a list between two collections. */
const RECENT_ENTRIES = 256

async function collectBoundaries(store: ObjectStore, paths: Paths, newest: number): Promise<void> {
  for await (const { path } of store.list(paths.boundaries)) if (numberOf(path) < newest) await store.delete(path)
}
