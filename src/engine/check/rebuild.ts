import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { readChecksummed } from '../files/checksummed-json.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { checkLeads, type Leading, storeOfLeader } from '../ledger/leading.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { decodeSegment } from '../ledger/segment.ts'
import { directFiles, genesis, type Manifest } from '../manifest/manifest.ts'
import { readEntries } from '../manifest/page-list.ts'
import { boundaryOf, encodeManifest, manifestNumbers, readManifest } from '../manifest/stored-manifests.ts'
import { numberOf, Paths } from '../paths.ts'
import { Compactor, type CompactorOptions } from '../publish/compactor.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { recordedPublishes, replay } from './replay.ts'

interface RebuildOptions extends Pick<CompactorOptions, 'store' | 'scope' | 'registry' | 'clock' | 'name'> {
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
}

interface LedRebuildOptions extends RebuildOptions {
  /** Checked before every write. No epoch is taken for it, as a leader does when it opens: a sound state stays as it is. */
  readonly lease?: Leading
}

export interface RebuildReport {
  readonly manifest: number
  readonly segments: number
  readonly events: number
  /** Files that were damaged or gone and have been written again. */
  readonly repaired: readonly string[]
  /** `recorded`: in the order in which the ledger was folded. `anew`: that order was lost, so by segment name. */
  readonly order: 'recorded' | 'anew'
  readonly problems: readonly Damage[]
}

/**
 * Makes the tables again from the ledger. While the recorded order can be read and repeated, every file comes out byte
 * for byte as it was, and only what is damaged is written; when it cannot, the ledger is folded anew, published as the
 * next version, and the versions before it are given up.
 */
export async function rebuild({ lease, ...given }: LedRebuildOptions): Promise<RebuildReport> {
  const report = await rebuildAll({ ...given, store: storeOfLeader(given.store, lease) })
  // What another leader wrote meanwhile may look like damage, or like nothing to do.
  await checkLeads(lease)
  return report
}

async function rebuildAll(options: RebuildOptions): Promise<RebuildReport> {
  const { store, scope } = options
  const paths = new Paths(scope)
  const problems = await damagedSegments(options, paths)
  const newest = (await manifestNumbers(store, paths)).at(-1)
  const manifest = newest === undefined ? undefined : await readable(options, paths, newest)
  const repaired = manifest && (await repair(options, paths, manifest, problems))
  if (repaired !== undefined) return await finish(options, await Compactor.open(options), repaired, 'recorded', problems)
  return await foldAnew(options, paths, problems)
}

async function damagedSegments({ store, scope }: RebuildOptions, paths: Paths): Promise<Map<string, Damage>> {
  const problems = new Map<string, Damage>()
  for await (const { path } of store.list(paths.ledger)) {
    const bytes = await store.get(path)
    const error = bytes && (await corruption(async () => void decodeSegment(bytes, path, scope)))
    if (error !== undefined) problems.set(path, { path, message: error.message })
  }
  return problems
}

/** The newest manifest if it and the whole recorded order behind it can be read. */
async function readable({ store, scope }: RebuildOptions, paths: Paths, number: number): Promise<Manifest | undefined> {
  let manifest: Manifest | undefined
  const error = await corruption(async () => {
    manifest = await readManifest(store, paths, scope, number)
    if (manifest === undefined) return
    for await (const entry of readEntries(store, manifest.order)) await readOrder(store, entry)
    for await (const _entry of readEntries(store, manifest.history)) {
      // Reading is the check.
    }
  })
  return error === undefined ? manifest : undefined
}

/** Restores files that are damaged or gone; undefined if the ledger as it is no longer gives their bytes. */
async function repair(
  options: RebuildOptions,
  paths: Paths,
  manifest: Manifest,
  problems: Map<string, Damage>,
): Promise<string[] | undefined> {
  const { store, scope, registry, scratch } = options
  const repaired: string[] = []
  const damaged = await damagedFiles(options, paths, manifest)
  const onFile = async (path: string, bytes: Uint8Array): Promise<void> => {
    const ref = damaged.get(path)
    // Another version of Servo or of zstd may write the same rows in other bytes: those are not what the manifest names.
    if (ref === undefined || sha256(bytes) !== ref.sha256) return
    await store.put(path, bytes)
    damaged.delete(path)
    repaired.push(path)
  }
  const error = await corruption(
    async () => void (await replay({ store, scope, registry, scratch, onFile }, recordedPublishes(store, manifest))),
  )
  const path = error?.facts['path'] as string | undefined
  if (error !== undefined && path !== undefined && !problems.has(path)) problems.set(path, { path, message: error.message })
  if (damaged.size > 0) return undefined

  const copy = encodeManifest(manifest)
  const found = await store.get(paths.manifestCopy)
  if (found === undefined || Buffer.compare(found, copy) !== 0) {
    await store.put(paths.manifestCopy, copy)
    repaired.push(paths.manifestCopy)
  }
  return repaired
}

/** Readers may still hold older manifests that are kept, so their files count too. No reader can hold a manifest that is damaged. */
async function damagedFiles({ store, scope }: RebuildOptions, paths: Paths, newest: Manifest): Promise<Map<string, FileRef>> {
  const wanted = new Map<string, FileRef>()
  const boundary = await boundaryOf(store, paths)
  for (const number of await manifestNumbers(store, paths)) {
    if (number < boundary) continue
    const error = await corruption(async () => {
      const kept = await readManifest(store, paths, scope, number)
      for (const file of kept === undefined ? [] : directFiles(kept)) wanted.set(file.path, file)
    })
    if (error !== undefined) await store.delete(paths.manifest(number))
  }
  for await (const entry of readEntries(store, newest.history)) {
    for (const [table, file] of Object.entries(entry.tables))
      if (entry.publish >= (newest.dropped[table] ?? 0)) wanted.set(file.path, file)
  }
  for (const file of wanted.values()) {
    if ((await corruption(async () => void (await getChecked(store, file)))) === undefined) wanted.delete(file.path)
  }
  return wanted
}

async function foldAnew(options: RebuildOptions, paths: Paths, problems: Map<string, Damage>): Promise<RebuildReport> {
  const { store, scope } = options
  const start: Manifest = { ...genesis(scope), ...(await numbersAbove(options, paths)) }
  const report = await finish(options, await Compactor.at(options, start), [], 'anew', problems)
  if (report.manifest === start.number) return report
  // Versions before this one name files that are damaged or follow from another order. Readers move on to this one.
  await store.create(paths.boundary(start.number + 1), new Uint8Array())
  for (const number of await manifestNumbers(store, paths))
    if (number <= start.number) await store.delete(paths.manifest(number))
  return report
}

/** Numbers that no file, manifest, collector or frozen compactor has seen, so that no old file can be mistaken for a new one. */
async function numbersAbove(
  { store, scope }: RebuildOptions,
  paths: Paths,
): Promise<Pick<Manifest, 'number' | 'epoch' | 'publish'>> {
  const known: Pick<Manifest, 'number' | 'epoch' | 'publish'>[] = []
  const numbers = await manifestNumbers(store, paths)
  for (const number of numbers) {
    await corruption(async () => {
      const manifest = await readManifest(store, paths, scope, number)
      if (manifest !== undefined) known.push(manifest)
    })
  }
  await corruption(async () => {
    const copy = await store.get(paths.manifestCopy)
    if (copy !== undefined) known.push(readChecksummed<(typeof known)[number]>('manifest', copy, paths.manifestCopy))
  })
  let epoch = 0
  let publish = 0
  for await (const { path } of store.list(paths.state)) {
    if (Number.isNaN(numberOf(path))) continue
    publish = Math.max(publish, numberOf(path))
    epoch = Math.max(epoch, Number(/-(\d+)/.exec(path.slice(path.lastIndexOf('/')))?.[1] ?? 0))
  }
  const boundary = await boundaryOf(store, paths)
  let number = Math.max(boundary, numbers.at(-1) ?? 0, ...known.map((manifest) => manifest.number))
  for (const manifest of known) {
    publish = Math.max(publish, manifest.publish)
    // Each manifest that cannot be read may have been a takeover.
    epoch = Math.max(epoch, manifest.epoch + number - manifest.number)
  }
  // One more than the next, or a view that holds the last publish would mistake this for the publish that follows it.
  publish += 1
  // Every manifest is a publish or a takeover, so there were at least this many, even if all are gone.
  number = Math.max(number, publish + epoch)
  return { number, epoch, publish }
}

async function finish(
  options: RebuildOptions,
  compactor: Compactor,
  repaired: readonly string[],
  order: RebuildReport['order'],
  problems: Map<string, Damage>,
): Promise<RebuildReport> {
  await compactor.catchUp({ settledToo: true })
  await compactor.publish({ kind: order === 'anew' ? 'base' : 'delta' })
  for (const [path, damage] of compactor.fold.damaged) problems.set(path, damage)
  const { number, watermarks } = compactor.manifest
  if (watermarks.segments === 0 && problems.size === 0) {
    throw new ServoError(
      'not_found',
      'no_ledger',
      `no ledger found for ${options.scope.tenant_id}/${options.scope.workspace_id}`,
      { hint: 'Check the folder, the tenant and the workspace.' },
    )
  }
  return {
    manifest: number,
    segments: watermarks.segments,
    events: watermarks.events,
    repaired,
    order,
    problems: [...problems.values()],
  }
}

/** The damage that some work met, if any; an outage is thrown. */
async function corruption(work: () => Promise<void>): Promise<ServoError | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (isServoError(error, 'corrupt')) return error
    throw error
  }
}
