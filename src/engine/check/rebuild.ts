import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { isSettled } from '../ledger/days.ts'
import { checkLeads, type Leading, storeOfLeader } from '../ledger/leading.ts'
import { missingSegments } from '../ledger/missing-segments.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { directFiles, genesis, type LastSegments, type Manifest } from '../manifest/manifest.ts'
import { numbersAbove } from '../manifest/numbers-above.ts'
import { readEntries } from '../manifest/page-list.ts'
import { markOf, type PublishedMark, readMark } from '../manifest/published-mark.ts'
import { boundaryOf, encodeManifest, manifestNumbers, readManifest } from '../manifest/stored-manifests.ts'
import { archiveAt, Paths, segmentUlid } from '../paths.ts'
import { Compactor, type CompactorOptions } from '../publish/compactor.ts'
import { corruption, unlessCorrupt } from './corruption.ts'
import { daysOfArchives } from './findings.ts'
import { type MendedLedger, mendLedger } from './mend-ledger.ts'
import { namedArchives } from './named-archives.ts'
import { readableManifests } from './readable-manifests.ts'
import { recordedPublishes, replay } from './replay.ts'
import { describeStranger, knownLedger, strangers } from './strangers.ts'

interface RebuildOptions extends Pick<CompactorOptions, 'store' | 'scope' | 'registry' | 'clock' | 'name'> {
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
  /** What the last leader kept with its lease. */
  readonly kept?: string | undefined
  /** Folds what is left of the ledger even if sound tables have rows of segments that are lost. */
  readonly acceptLoss?: boolean | undefined
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
  /** `recorded`: in the order in which the ledger was folded. `anew`: by segment name. */
  readonly order: 'recorded' | 'anew'
  /** Why it was not the recorded order. */
  readonly anew_because: 'order_lost' | 'other_bytes' | 'loss_accepted' | null
  /** Segments and archives that are damaged or missing, and what lies in the ledger and is none of it. */
  readonly problems: readonly Damage[]
  /** Tables, manifests and lists that stay as they are: they cannot be made again without segments that are lost. */
  readonly left: readonly Damage[]
}

/** A report, and the manifest that is the newest from now on; none if the state stays as it was. */
interface Rebuilt {
  readonly report: RebuildReport
  readonly manifest?: Manifest
}

/**
 * Makes the tables again from the ledger. While the recorded order can be read and repeated, every file comes out byte
 * for byte as it was, and only what is damaged is written; when it cannot, the ledger is folded anew, published as the
 * next version, and the versions before it are given up. Segments that lie in the wrong place are put back first.
 *
 * Nothing is folded anew while segments are lost whose rows the tables still have, unless the loss is accepted.
 */
export async function rebuild({ lease, ...given }: LedRebuildOptions): Promise<RebuildReport> {
  const options = { ...given, store: storeOfLeader(given.store, lease), kept: lease?.kept }
  const { report, manifest } = await new Rebuild(options).run()
  // What another leader wrote meanwhile may look like damage, or like nothing to do.
  await checkLeads(lease)
  if (manifest !== undefined) await lease?.keep?.(markOf(manifest))
  return report
}

class Rebuild {
  readonly #options: RebuildOptions
  readonly #paths: Paths
  readonly #problems = new Map<string, Damage>()
  readonly #left = new Map<string, Damage>()
  readonly #repaired: string[] = []
  /** Segments that were folded and cannot be read any more. */
  readonly #lost = new Set<string>()
  /** Those of them that are in archives that are damaged, missing or not the right ones. */
  readonly #unreadable: string[] = []
  /** Segments of other ledgers. */
  readonly #refused = new Set<string>()

  constructor(options: RebuildOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
  }

  async run(): Promise<Rebuilt> {
    const { store, scope, kept, acceptLoss = false } = this.#options
    // What the lease says is of use only if it is sound. It is replaced in the end.
    const mark = await unlessCorrupt(Promise.resolve().then(() => (kept === undefined ? undefined : readMark(kept))))
    // Before anything is written: what a newer version wrote is left alone.
    const { newest, readable, damaged } = await readableManifests({ store, scope, paths: this.#paths }, mark)
    for (const { path, message } of damaged) this.#leave(path, message)
    const named = await namedArchives(store, readable)
    const ledger = await mendLedger({ store, scope, paths: this.#paths }, named)
    this.#repaired.push(...ledger.repaired)
    for (const damage of ledger.problems.values()) this.#report(damage)
    for (const ulid of ledger.refused) this.#refused.add(ulid)
    const writers = [readable?.writers ?? {}, mark?.writers ?? {}]
    if (newest !== undefined) await this.#compareOrder(newest, { ledger, named, writers })
    const hasGaps = this.#reportGaps(ledger, writers)
    if (newest !== undefined) {
      await this.#restoreManifest(newest)
      if (await this.#repair(newest)) return await this.#finish(await Compactor.open(this.#options), 'recorded')
    }
    const hasLost = newest === undefined ? hasGaps || this.#hasUnreadable(ledger, readable) : this.#lost.size > 0
    if (hasLost && readable !== undefined && !acceptLoss) return { report: this.#reportOf(readable, null) }
    const because = hasLost && acceptLoss ? 'loss_accepted' : newest === undefined ? 'order_lost' : 'other_bytes'
    return await this.#foldAnew(mark, readable, because)
  }

  #report(damage: Damage): void {
    if (!this.#problems.has(damage.path)) this.#problems.set(damage.path, damage)
  }

  #leave(path: string, message: string): void {
    if (!this.#left.has(path)) this.#left.set(path, { path, message })
  }

  /** Segments that were folded and are gone are lost, whatever becomes of the tables; and some that are there may be those of another ledger. */
  async #compareOrder(
    manifest: Manifest,
    { ledger, named, writers }: { ledger: MendedLedger; named: ReadonlyMap<string, FileRef>; writers: readonly LastSegments[] },
  ): Promise<void> {
    const damaged = daysOfArchives(this.#problems.values())
    const folded = new Set<string>()
    for await (const { segments } of recordedPublishes(this.#options.store, manifest)) {
      for (const ulid of segments) {
        folded.add(ulid)
        if (ledger.segments.has(ulid)) continue
        this.#lost.add(ulid)
        const path = this.#paths.segment(ulid)
        if (damaged.has(utcDay(ulidTime(ulid)))) this.#unreadable.push(ulid)
        else this.#report({ path, message: `${path} is missing, but it was folded; restore it from a backup` })
      }
    }
    const there = [...ledger.segments].map(([ulid, found]) => ({ ulid, ...found }))
    const late = there.filter(({ ulid }) => !folded.has(ulid) && isSettled(manifest, utcDay(ulidTime(ulid))))
    for (const { ulid, path } of strangers(late, knownLedger(there, { folded, named, lists: writers }))) {
      this.#refused.add(ulid)
      this.#report({ path, message: describeStranger(path) })
    }
  }

  #reportGaps({ seen, segments }: MendedLedger, named: readonly LastSegments[]): boolean {
    const reported = [...this.#problems.keys()].flatMap((path) => segmentUlid(path) ?? [])
    const strange = new Set([...this.#refused].flatMap((ulid) => segments.get(ulid)?.sequence?.writer ?? []))
    const gaps = seen.gaps({}, ...named).filter(({ writer }) => !strange.has(writer))
    const missing = missingSegments(this.#paths, gaps, [...reported, ...this.#unreadable])
    for (const damage of missing) this.#report(damage)
    return missing.length > 0
  }

  /** True if the ledger has fewer segments than the manifest counts, or some that cannot be read. */
  #hasUnreadable({ segments, problems }: MendedLedger, manifest: Manifest | undefined): boolean {
    const isPart = (path: string): boolean => segmentUlid(path) !== undefined || archiveAt(path) !== undefined
    return segments.size < (manifest?.watermarks.segments ?? 0) || [...problems.keys()].some(isPart)
  }

  /** The newest manifest, if only its copy was left. */
  async #restoreManifest(manifest: Manifest): Promise<void> {
    const { store, scope } = this.#options
    const { number } = manifest
    const path = this.#paths.manifest(number)
    if ((await unlessCorrupt(readManifest(store, this.#paths, scope, number))) !== undefined) return
    await store.put(path, encodeManifest(manifest))
    this.#left.delete(path)
    this.#repaired.push(path)
  }

  /** Restores files that are damaged or gone. False if the ledger as it is no longer gives the bytes of all. */
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
    if (damaged.size > 0) {
      const given = { store, scope, registry, scratch, onFile, lost: this.#lost }
      const error = await corruption(
        async () => void (await replay(given, recordedPublishes(store, manifest))),
        this.#lost.size > 0,
      )
      const { path } = error?.facts ?? {}
      if (error !== undefined && typeof path === 'string') this.#report({ path, message: error.message })
    }
    const why = 'it cannot be made again without what is lost of the ledger'
    for (const path of damaged.keys()) this.#leave(path, `${path} is damaged or missing; ${why}`)
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
      if (error === undefined) continue
      await store.delete(this.#paths.manifest(number))
      this.#left.delete(this.#paths.manifest(number))
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

  async #foldAnew(
    mark: PublishedMark | undefined,
    readable: Manifest | undefined,
    because: NonNullable<RebuildReport['anew_because']>,
  ): Promise<Rebuilt> {
    const { store, scope } = this.#options
    this.#left.clear()
    const numbers = await numbersAbove({ store, scope, paths: this.#paths }, mark)
    const start: Manifest = { ...genesis(scope), ...numbers, ...(await this.#namesArchives(readable)) }
    const finished = await this.#finish(await Compactor.at(this.#options, start), 'anew', because)
    if (finished.manifest === undefined || finished.manifest.number === start.number) return finished
    // Versions before this one name files that are damaged or follow from another order. Readers move on to this one.
    await store.create(this.#paths.boundary(start.number + 1), new Uint8Array())
    for (const number of await manifestNumbers(store, this.#paths))
      if (number <= start.number) await store.delete(this.#paths.manifest(number))
    return finished
  }

  /** The list of archives goes on, if it can be read: one that is lost is missed, and known again when it is restored. */
  async #namesArchives(manifest: Manifest | undefined): Promise<Pick<Manifest, 'archives'>> {
    if (manifest?.archives === undefined) return {}
    const { archives } = manifest
    const error = await corruption(async () => void (await Array.fromAsync(readEntries(this.#options.store, archives))))
    return error === undefined ? { archives } : {}
  }

  async #finish(
    compactor: Compactor,
    order: RebuildReport['order'],
    because: RebuildReport['anew_because'] = null,
  ): Promise<Rebuilt> {
    compactor.fold.refuse(this.#refused)
    await compactor.catchUp({ settledToo: true })
    await compactor.publish({ kind: order === 'anew' ? 'base' : 'delta' })
    const named = daysOfArchives(this.#problems.values())
    for (const damage of compactor.fold.damaged.values()) {
      // The archive that has it is named.
      if (!named.has(utcDay(ulidTime(segmentUlid(damage.path) ?? '')))) this.#report(damage)
    }
    if (compactor.manifest.watermarks.segments === 0 && this.#problems.size === 0) {
      const { tenant_id, workspace_id } = this.#options.scope
      throw new ServoError('not_found', 'no_ledger', `no ledger found for ${tenant_id}/${workspace_id}`, {
        hint: 'Check the folder, the tenant and the workspace.',
      })
    }
    return { report: this.#reportOf(compactor.manifest, because), manifest: compactor.manifest }
  }

  #reportOf({ number, watermarks }: Manifest, because: RebuildReport['anew_because']): RebuildReport {
    const inLedger = (path: string): boolean =>
      [this.#paths.ledger, this.#paths.archives].some((folder) => path.startsWith(folder))
    return {
      manifest: number,
      segments: watermarks.segments,
      events: watermarks.events,
      repaired: because === null ? this.#repaired : this.#repaired.filter(inLedger),
      order: because === null ? 'recorded' : 'anew',
      anew_because: because,
      problems: [...this.#problems.values()],
      left: [...this.#left.values()],
    }
  }
}
