import { isServoError, ServoError } from '../lib/error.ts'
import type { Registry } from '../model/event.ts'
import type { Clock } from '../ports/clock.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { Compactor, type Problem } from './compactor.ts'
import { readOrder } from './folded-segments.ts'
import { directFiles, genesis, type Manifest, manifestNumbers, readManifest } from './manifest.ts'
import { listPages, readEntries } from './page-list.ts'
import { Paths, type Scope } from './paths.ts'
import { recordedPublishes, replay } from './replay.ts'

export interface RebuildOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Clock
  readonly name: string
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
}

export interface RebuildReport {
  readonly manifest: number
  readonly segments: number
  readonly events: number
  /** Files that were damaged or gone and have been written again. */
  readonly repaired: readonly string[]
  /** `recorded`: in the order in which the ledger was folded. `anew`: that order was lost, so by segment name. */
  readonly order: 'recorded' | 'anew'
  readonly problems: readonly Problem[]
}

/**
 * Makes the tables again from the ledger. While the recorded order can be read, every file comes out byte for byte as
 * it was and only what is damaged is written; when it cannot, the ledger is folded anew and published as the next
 * version.
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildReport> {
  const { store, scope } = options
  const paths = new Paths(scope)
  const numbers = await manifestNumbers(store, paths)
  const newest = numbers.at(-1) ?? 0
  const manifest = await readable(options, paths, newest)
  if (manifest !== undefined) return await repair(options, manifest)
  return await foldAnew(options, paths, newest)
}

/** The newest manifest if it and the whole recorded order behind it can be read. */
async function readable({ store, scope }: RebuildOptions, paths: Paths, number: number): Promise<Manifest | undefined> {
  try {
    const manifest = await readManifest(store, paths, scope, number)
    if (manifest === undefined) return undefined
    for await (const entry of readEntries(store, manifest.order)) await readOrder(store, entry)
    for await (const _page of listPages(store, manifest.history)) {
      // Reading is the check.
    }
    for await (const _entry of readEntries(store, manifest.history)) {
      // As above.
    }
    return manifest
  } catch (error) {
    if (isServoError(error, 'corrupt')) return undefined
    throw error
  }
}

async function repair(options: RebuildOptions, manifest: Manifest): Promise<RebuildReport> {
  const { store, scope, registry, scratch } = options
  // Readers may still hold older manifests that are kept; their files are made again on the way.
  const wanted = new Set<string>()
  for (const number of await manifestNumbers(store, new Paths(scope))) {
    const kept = await readManifest(store, new Paths(scope), scope, number).catch(() => undefined)
    if (kept !== undefined) for (const file of directFiles(kept)) wanted.add(file.path)
  }
  for await (const entry of readEntries(store, manifest.history)) {
    for (const [table, file] of Object.entries(entry.tables)) if (entry.publish >= (manifest.dropped[table] ?? 0)) wanted.add(file.path)
  }

  const repaired: string[] = []
  const onFile = async (path: string, bytes: Uint8Array): Promise<void> => {
    if (!wanted.has(path)) return
    const found = await store.get(path)
    if (found !== undefined && Buffer.compare(found, bytes) === 0) return
    await store.put(path, bytes)
    repaired.push(path)
  }
  await replay({ store, scope, registry, scratch, onFile }, recordedPublishes(store, manifest))
  return await finish(options, await Compactor.open(options), repaired, 'recorded')
}

async function foldAnew(options: RebuildOptions, paths: Paths, newest: number): Promise<RebuildReport> {
  const { store, scope } = options
  // Above every number and epoch that any file may carry, so that nothing that is there is taken for new.
  const start: Manifest = { ...genesis(scope), number: newest, epoch: await highestEpoch(store, paths) }
  return await finish(options, await Compactor.at(options, start), [], 'anew')
}

async function highestEpoch(store: ObjectStore, paths: Paths): Promise<number> {
  let highest = 0
  for await (const { path } of store.list(paths.state)) {
    const epoch = Number(/-(\d+)(?:-\d+)?\.(?:parquet|json)$/.exec(path)?.[1] ?? 0)
    highest = Math.max(highest, epoch)
  }
  return highest
}

async function finish(options: RebuildOptions, compactor: Compactor, repaired: readonly string[], order: RebuildReport['order']): Promise<RebuildReport> {
  await compactor.catchUp({ lookbackMs: Number.POSITIVE_INFINITY })
  await compactor.publish({ kind: order === 'anew' ? 'base' : 'delta' })
  if (order === 'anew' && compactor.manifest.number === 0 && compactor.problems.size === 0) {
    throw new ServoError('not_found', 'no_ledger', `there is no ledger of ${options.scope.tenant_id}/${options.scope.workspace_id}`, { hint: 'Check the folder, the tenant and the workspace.' })
  }
  const { number, watermarks } = compactor.manifest
  return { manifest: number, segments: watermarks.segments, events: watermarks.events, repaired, order, problems: [...compactor.problems.values()] }
}
