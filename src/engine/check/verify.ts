import { isServoError, messageOf } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { Registry } from '../../model/event.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import type { AnyRow } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { readChecksummed } from '../files/checksummed-json.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { allTables } from '../fold/state.ts'
import { isSettled } from '../ledger/days.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { decodeSegment } from '../ledger/segment.ts'
import { directFiles, genesis, type Manifest } from '../manifest/manifest.ts'
import { listPages, readEntries } from '../manifest/page-list.ts'
import { boundaryOf, decodeManifest, manifestNumbers } from '../manifest/stored-manifests.ts'
import { decodeRows, storedColumns } from '../parquet/parquet.ts'
import { Paths, type Scope, segmentUlid } from '../paths.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { removedKeysOf } from '../publish/removed-keys.ts'
import { recordedPublishes, replay } from './replay.ts'

export interface VerifyOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
  /** Leaves out the replay: proves that nothing is damaged, not that the tables follow from the ledger. */
  readonly quick?: boolean
}

export interface VerifyReport {
  readonly ok: boolean
  readonly manifest: number
  readonly segments: number
  readonly events: number
  readonly files: number
  readonly problems: readonly Damage[]
  /** Segments that the newest manifest does not cover yet. Normal while something runs. */
  readonly unfolded: readonly string[]
  /** Facts that wait for others. */
  readonly parked: number
  readonly replayed: boolean
  /** Files whose rows a replay gives in other bytes, because another version of Servo wrote them. */
  readonly relaid: readonly string[]
}

/** Proves that files, checksums and replay agree; names everything that does not. */
export async function verify(options: VerifyOptions): Promise<VerifyReport> {
  return await new Verification(options).run()
}

class Verification {
  readonly #options: VerifyOptions
  readonly #paths: Paths
  readonly #problems = new Map<string, Damage>()
  readonly #checked = new Set<string>()
  readonly #relaid: string[] = []
  #events = 0

  constructor(options: VerifyOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
  }

  async run(): Promise<VerifyReport> {
    // Manifests before the ledger: what is written meanwhile is then seen as not yet folded, never as missing.
    const manifests = await this.#readManifests()
    const newest = manifests.at(-1) ?? genesis(this.#options.scope)
    const inLedger = await this.#readLedger()
    for (const manifest of manifests) for (const file of directFiles(manifest)) await this.#checkFile(file)
    const expected = new Map([...directFiles(newest)].map((file) => [file.path, file]))
    await this.#checkLists(newest, expected)
    const folded = await this.#checkOrder(newest, inLedger)
    const unfolded = [...inLedger].filter((ulid) => !folded.has(ulid)).sort()
    for (const ulid of unfolded) {
      if (!isSettled(newest, utcDay(ulidTime(ulid)))) continue
      const path = this.#paths.segment(ulid)
      this.#report(path, `${path} lies in a day that was settled without it; servo rebuild folds it`)
    }
    const replayed = !this.#options.quick && this.#problems.size === 0
    const parked = replayed ? await this.#replay(newest, expected) : 0
    return {
      ok: this.#problems.size === 0,
      manifest: newest.number,
      segments: inLedger.size,
      events: this.#events,
      files: this.#checked.size,
      problems: [...this.#problems.values()],
      unfolded,
      parked,
      replayed,
      relaid: this.#relaid,
    }
  }

  async #readManifests(): Promise<Manifest[]> {
    const { store, scope } = this.#options
    const manifests: Manifest[] = []
    const boundary = await boundaryOf(store, this.#paths)
    for (const number of await manifestNumbers(store, this.#paths)) {
      if (number < boundary) continue
      const path = this.#paths.manifest(number)
      await this.#try(path, async () => {
        const bytes = await store.get(path)
        // Garbage collection may have been faster.
        if (bytes !== undefined) manifests.push(decodeManifest(bytes, path, scope))
      })
    }
    const copy = this.#paths.manifestCopy
    await this.#try(copy, async () => {
      const bytes = await store.get(copy)
      if (bytes !== undefined) readChecksummed('manifest', bytes, copy)
    })
    for (let i = 1; i < manifests.length; i++) {
      const [before, after] = [manifests[i - 1] as Manifest, manifests[i] as Manifest]
      const wentBack =
        after.epoch < before.epoch || after.publish < before.publish || after.watermarks.segments < before.watermarks.segments
      if (wentBack)
        this.#report(
          this.#paths.manifest(after.number),
          `epoch, publish or position went back from manifest ${before.number} to ${after.number}`,
        )
    }
    return manifests
  }

  async #readLedger(): Promise<Set<string>> {
    const { store, scope } = this.#options
    const ulids = new Set<string>()
    for await (const { path } of store.list(this.#paths.ledger)) {
      await this.#try(path, async () => {
        const ulid = segmentUlid(path)
        if (ulid === undefined || path !== this.#paths.segment(ulid))
          return this.#report(path, `${path} is not where a segment belongs`)
        const bytes = await store.get(path)
        if (bytes === undefined) return
        this.#events += decodeSegment(bytes, path, scope).length
        ulids.add(ulid)
      })
    }
    return ulids
  }

  async #checkFile(file: FileRef): Promise<void> {
    if (this.#checked.has(file.path)) return
    this.#checked.add(file.path)
    await this.#try(file.path, async () => void (await getChecked(this.#options.store, file)))
  }

  async #checkLists(manifest: Manifest, expected: Map<string, FileRef>): Promise<void> {
    const { store } = this.#options
    for (const list of [manifest.history, manifest.order]) {
      await this.#try('', async () => {
        for await (const page of listPages<{ publish: number }>(store, list)) await this.#checkFile(page)
      })
    }
    await this.#try('', async () => {
      for await (const entry of readEntries(store, manifest.history)) {
        for (const [table, file] of Object.entries(entry.tables)) {
          if (entry.publish < (manifest.dropped[table] ?? 0)) continue
          expected.set(file.path, file)
          await this.#checkFile(file)
        }
      }
    })
    await this.#try('', async () => {
      for await (const entry of readEntries(store, manifest.order)) await this.#checkFile(entry)
    })
  }

  /** Every segment was folded at most once, and none that was folded is gone. */
  async #checkOrder(manifest: Manifest, inLedger: ReadonlySet<string>): Promise<Set<string>> {
    const { store } = this.#options
    const folded = new Set<string>()
    const fold = (ulid: string): void => {
      const path = this.#paths.segment(ulid)
      if (folded.has(ulid)) this.#report(path, `${path} was folded twice`)
      if (!inLedger.has(ulid) && !this.#problems.has(path)) this.#report(path, `${path} is missing, but it was folded`)
      folded.add(ulid)
    }
    await this.#try('', async () => {
      for await (const entry of readEntries(store, manifest.order)) {
        await this.#try(entry.path, async () => {
          for (const publish of await readOrder(store, entry)) for (const ulid of publish.segments) fold(ulid)
        })
      }
    })
    for (const delta of manifest.l0) for (const ulid of delta.segments) fold(ulid)
    if (this.#problems.size === 0 && folded.size !== manifest.watermarks.segments) {
      this.#report(
        this.#paths.manifest(manifest.number),
        `the manifest counts ${manifest.watermarks.segments} segments, its order lists ${folded.size}`,
      )
    }
    return folded
  }

  async #replay(manifest: Manifest, expected: ReadonlyMap<string, FileRef>): Promise<number> {
    const made = new Set<string>()
    const { store, scope, registry, scratch } = this.#options
    const onFile = async (path: string, bytes: Uint8Array): Promise<void> => {
      const file = expected.get(path)
      if (file === undefined) return
      made.add(path)
      if (sha256(bytes) === file.sha256) return
      if (await this.#holdsSameRows(file, bytes)) this.#relaid.push(path)
      else this.#report(path, `${path} does not follow from the ledger: a replay gives other rows`)
    }
    let parked = 0
    await this.#try(this.#paths.ledger, async () => {
      const compactor = await replay({ store, scope, registry, scratch, onFile }, recordedPublishes(store, manifest))
      parked = compactor.state.hotTable(parkedEvents).size
      for (const path of expected.keys()) {
        if (!made.has(path)) this.#report(path, `${path} does not follow from the ledger: a replay makes no such file`)
      }
    })
    return parked
  }

  /** A file of an earlier version of Servo has other bytes and perhaps fewer columns; its rows must still be the same. */
  async #holdsSameRows(file: FileRef, replayed: Uint8Array): Promise<boolean> {
    const [name, layer] = file.path.slice(this.#paths.state.length).split('/')
    const table = allTables(this.#options.registry).find((candidate) => candidate.name === name)
    if (table === undefined) return false
    const read = layer === 'removed' ? removedKeysOf(table) : table
    const bytes = await getChecked(this.#options.store, file)
    const columns = storedColumns(bytes)
    const shared = (rows: AnyRow[]) =>
      rows.map((row) => canonicalJson(Object.fromEntries(Object.entries(row).filter(([column]) => columns.has(column)))))
    const [before, after] = [
      shared(await decodeRows(read, bytes, file.path)),
      shared(await decodeRows(read, replayed, file.path)),
    ]
    return before.length === after.length && before.every((row, i) => row === after[i])
  }

  async #try(path: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      this.#report((error.facts['path'] as string | undefined) ?? path, messageOf(error))
    }
  }

  #report(path: string, message: string): void {
    if (!this.#problems.has(path)) this.#problems.set(path, { path, message })
  }
}
