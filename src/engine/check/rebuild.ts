import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { checkLeads, type Leading, storeOfLeader } from '../ledger/leading.ts'
import { missingSegments } from '../ledger/missing-segments.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { archivesOf, directFiles, genesis, type LastSegments, type Manifest } from '../manifest/manifest.ts'
import { numbersAbove } from '../manifest/numbers-above.ts'
import { readEntries } from '../manifest/page-list.ts'
import { markOf, type PublishedMark, readMark } from '../manifest/published-mark.ts'
import { boundaryOf, encodeManifest, manifestNumbers, readCopy, readManifest } from '../manifest/stored-manifests.ts'
import { Paths, segmentUlid } from '../paths.ts'
import { Compactor, type CompactorOptions } from '../publish/compactor.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { daysOfArchives } from './findings.ts'
import { type MendedLedger, mendLedger } from './mend-ledger.ts'
import { recordedPublishes, replay } from './replay.ts'

interface RebuildOptions extends Pick<CompactorOptions, 'store' | 'scope' | 'registry' | 'clock' | 'name'> {
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
  /** What the last leader kept with its lease. */
  readonly kept?: string | undefined
}

interface LedRebuildOptions extends Omit<RebuildOptions, 'kept'> {
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
 * next version, and the versions before it are given up. Segments that lie in the wrong place are put back first.
 */
export async function rebuild({ lease, ...given }: LedRebuildOptions): Promise<RebuildReport> {
  const options = { ...given, store: storeOfLeader(given.store, lease), kept: lease?.kept }
  const { report, manifest } = await new Rebuild(options).run()
  // What another leader wrote meanwhile may look like damage, or like nothing to do.
  await checkLeads(lease)
  await lease?.keep?.(markOf(manifest))
  return report
}

class Rebuild {
  readonly #options: RebuildOptions
  readonly #paths: Paths
  readonly #problems = new Map<string, Damage>()
  readonly #repaired: string[] = []
  /** Segments in archives that are damaged. */
  readonly #unreadable: string[] = []

  constructor(options: RebuildOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
  }

  async run(): Promise<{ report: RebuildReport; manifest: Manifest }> {
    const { store, scope, kept } = this.#options
    const ledger = await mendLedger({ store, scope, paths: this.#paths })
    this.#repaired.push(...ledger.repaired)
    for (const damage of ledger.problems.values()) this.#report(damage)
    // What the lease says is of use only if it is sound. It is replaced in the end.
    const mark = await unlessCorrupt(Promise.resolve().then(() => (kept === undefined ? undefined : readMark(kept))))
    const newest = await this.#newest(mark)
    if (newest !== undefined) await this.#reportMissing(newest, ledger)
    this.#reportGaps(ledger, [newest?.writers ?? {}, mark?.writers ?? {}])
    if (newest !== undefined && (await this.#repair(newest)))
      return await this.#finish(await Compactor.open(this.#options), 'recorded')
    return await this.#foldAnew(mark)
  }

  #report(damage: Damage): void {
    if (!this.#problems.has(damage.path)) this.#problems.set(damage.path, damage)
  }

  /** The newest manifest, from its copy if it is damaged or gone, if it and the whole recorded order behind it can be read. */
  async #newest(mark: PublishedMark | undefined): Promise<Manifest | undefined> {
    const { store, scope } = this.#options
    const highest = (await manifestNumbers(store, this.#paths)).at(-1) ?? 0
    const found = await unlessCorrupt(readManifest(store, this.#paths, scope, highest))
    const copy = await unlessCorrupt(readCopy(store, this.#paths, scope))
    const boundary = await boundaryOf(store, this.#paths)
    const newest = Math.max(highest, boundary, mark?.manifest ?? 0, copy?.number ?? 0)
    const manifest = [found, copy].find((each) => each?.number === newest)
    if (manifest === undefined) return undefined
    if (manifest === copy) {
      const path = this.#paths.manifest(newest)
      await store.put(path, encodeManifest(copy))
      this.#repaired.push(path)
    }
    return (await corruption(() => readLists(store, manifest))) === undefined ? manifest : undefined
  }

  /** Segments that were folded and are gone are lost, whatever becomes of the tables. */
  async #reportMissing(manifest: Manifest, { ulids }: MendedLedger): Promise<void> {
    const damaged = daysOfArchives(this.#problems.values())
    for await (const { segments } of recordedPublishes(this.#options.store, manifest)) {
      for (const ulid of segments) {
        const path = this.#paths.segment(ulid)
        if (ulids.has(ulid)) continue
        if (damaged.has(utcDay(ulidTime(ulid)))) this.#unreadable.push(ulid)
        else this.#report({ path, message: `${path} is missing, but it was folded; restore it from a backup` })
      }
    }
  }

  #reportGaps({ seen }: MendedLedger, named: readonly LastSegments[]): void {
    const reported = [...this.#problems.keys()].flatMap((path) => segmentUlid(path) ?? [])
    for (const damage of missingSegments(this.#paths, seen.gaps({}, ...named), [...reported, ...this.#unreadable]))
      this.#report(damage)
  }

  /** Restores files that are damaged or gone. False if the ledger as it is no longer gives their bytes. */
  async #repair(manifest: Manifest): Promise<boolean> {
    const { store, scope, registry, scratch } = this.#options
    const damaged = await this.#damagedFiles(manifest)
    const onFile = async (path: string, bytes: Uint8Array): Promise<void> => {
      const ref = damaged.get(path)
      // Another version of Servo or of zstd may write the same rows in other bytes: those are not what the manifest names.
      if (ref === undefined || sha256(bytes) !== ref.sha256) return
      await store.put(path, bytes)
      damaged.delete(path)
      this.#repaired.push(path)
    }
    const error = await corruption(
      async () => void (await replay({ store, scope, registry, scratch, onFile }, recordedPublishes(store, manifest))),
    )
    const path = error?.facts['path'] as string | undefined
    if (error !== undefined && path !== undefined) this.#report({ path, message: error.message })
    if (damaged.size > 0) return false

    const copy = encodeManifest(manifest)
    const found = await store.get(this.#paths.manifestCopy)
    if (found === undefined || Buffer.compare(found, copy) !== 0) {
      await store.put(this.#paths.manifestCopy, copy)
      this.#repaired.push(this.#paths.manifestCopy)
    }
    return true
  }

  /** Readers may still hold older manifests that are kept, so their files count too. No reader can hold a manifest that is damaged. */
  async #damagedFiles(newest: Manifest): Promise<Map<string, FileRef>> {
    const { store, scope } = this.#options
    const wanted = new Map<string, FileRef>()
    const boundary = await boundaryOf(store, this.#paths)
    for (const number of await manifestNumbers(store, this.#paths)) {
      if (number < boundary) continue
      const error = await corruption(async () => {
        const kept = await readManifest(store, this.#paths, scope, number)
        for (const file of kept === undefined ? [] : directFiles(kept)) wanted.set(file.path, file)
      })
      if (error !== undefined) await store.delete(this.#paths.manifest(number))
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

  async #foldAnew(mark: PublishedMark | undefined): Promise<{ report: RebuildReport; manifest: Manifest }> {
    const { store, scope } = this.#options
    const start: Manifest = { ...genesis(scope), ...(await numbersAbove({ store, scope, paths: this.#paths }, mark)) }
    const finished = await this.#finish(await Compactor.at(this.#options, start), 'anew')
    if (finished.manifest.number === start.number) return finished
    // Versions before this one name files that are damaged or follow from another order. Readers move on to this one.
    await store.create(this.#paths.boundary(start.number + 1), new Uint8Array())
    for (const number of await manifestNumbers(store, this.#paths))
      if (number <= start.number) await store.delete(this.#paths.manifest(number))
    return finished
  }

  async #finish(compactor: Compactor, order: RebuildReport['order']): Promise<{ report: RebuildReport; manifest: Manifest }> {
    await compactor.catchUp({ settledToo: true })
    await compactor.publish({ kind: order === 'anew' ? 'base' : 'delta' })
    for (const damage of compactor.fold.damaged.values()) this.#report(damage)
    const { number, watermarks } = compactor.manifest
    if (watermarks.segments === 0 && this.#problems.size === 0) {
      const { tenant_id, workspace_id } = this.#options.scope
      throw new ServoError('not_found', 'no_ledger', `no ledger found for ${tenant_id}/${workspace_id}`, {
        hint: 'Check the folder, the tenant and the workspace.',
      })
    }
    const report: RebuildReport = {
      manifest: number,
      segments: watermarks.segments,
      events: watermarks.events,
      repaired:
        order === 'anew'
          ? this.#repaired.filter((path) =>
              [this.#paths.ledger, this.#paths.archives].some((folder) => path.startsWith(folder)),
            )
          : this.#repaired,
      order,
      problems: [...this.#problems.values()],
    }
    return { report, manifest: compactor.manifest }
  }
}

/** Reading is the check. */
async function readLists(store: ObjectStore, manifest: Manifest): Promise<void> {
  for await (const entry of readEntries(store, manifest.order)) await readOrder(store, entry)
  for (const list of [manifest.history, archivesOf(manifest)]) {
    for await (const _entry of readEntries<{ publish: number }>(store, list)) {
      // Nothing is to be done with it.
    }
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

async function unlessCorrupt<T>(reading: Promise<T>): Promise<T | undefined> {
  let read: T | undefined
  await corruption(async () => {
    read = await reading
  })
  return read
}
