import type { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { Registry } from '../../model/event.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { type FileRef, getChecked } from '../files/file-ref.ts'
import { allTables } from '../fold/state.ts'
import { isSettled } from '../ledger/days.ts'
import { missingSegments } from '../ledger/missing-segments.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { scanLedger } from '../ledger/scan-ledger.ts'
import { SeenSegments } from '../ledger/sequence.ts'
import { archivesOf, directFiles, type Manifest } from '../manifest/manifest.ts'
import { soundEntries } from '../manifest/page-list.ts'
import { archiveAt, Paths, type Scope, segmentUlid } from '../paths.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { removedKeysOf } from '../publish/removed-keys.ts'
import { daysOfArchives, Findings } from './findings.ts'
import { type CheckedManifests, checkManifests } from './manifest-check.ts'
import { judgeArchive, namedArchives, otherArchive } from './named-archives.ts'
import { recordedPublishes, replay } from './replay.ts'
import { salvage } from './salvage.ts'
import { holdSameRows } from './same-rows.ts'
import { StoredValues } from './stored-values.ts'
import { describeStranger, knownLedger, type Placed, strangers } from './strangers.ts'
import { type CheckedValues, checkValues } from './value-check.ts'

export interface VerifyOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  /** An empty store for the replay. */
  readonly scratch: ObjectStore
  /** Leaves out the replay: proves that nothing is damaged, not that the tables follow from the ledger. */
  readonly quick?: boolean
  /** Checks the stored values too. */
  readonly data?: boolean
  /** Reads what the last leader kept with its lease. */
  readonly kept?: () => Promise<string | undefined>
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
  /** Stored values; null if they were not to be checked. */
  readonly values: CheckedValues | null
}

/** Proves that files, checksums and replay agree; names everything that does not. */
export async function verify(options: VerifyOptions): Promise<VerifyReport> {
  return await new Verification(options).run()
}

interface KnownSegments {
  readonly found: CheckedManifests
  readonly named: ReadonlyMap<string, FileRef>
  readonly folded: ReadonlySet<string>
  readonly inLedger: ReadonlyMap<string, Placed>
}

class Verification {
  readonly #options: VerifyOptions
  readonly #paths: Paths
  readonly #findings = new Findings()
  readonly #checked = new Set<string>()
  readonly #relaid: string[] = []
  readonly #seen = new SeenSegments()
  /** The SHA-256 of values that were left out of the ledger. */
  readonly #forgotten = new Set<string>()
  /** Segments in archives that are damaged. */
  readonly #unreadable: string[] = []
  readonly #values: StoredValues | undefined
  #events = 0

  constructor(options: VerifyOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#values = options.data ? new StoredValues(options.registry) : undefined
  }

  async run(): Promise<VerifyReport> {
    const { store, scope, kept } = this.#options
    // Manifests before the ledger: what is written meanwhile is then seen as not yet folded, never as missing.
    const found = await checkManifests({ store, scope, paths: this.#paths, kept }, this.#findings)
    const { newest } = found
    const named = await namedArchives(store, newest)
    const inLedger = await this.#readLedger(await this.#otherArchives(named))
    const expected = await this.#checkFiles(found)
    const { folded, isWhole } = await this.#checkOrder(newest, inLedger)
    const unfolded = [...inLedger.keys()].filter((ulid) => !folded.has(ulid)).sort()
    // A part of the order that cannot be read may have any of them.
    const strange = isWhole ? this.#reportSettledWithout(unfolded, { found, named, folded, inLedger }) : new Set<string>()
    this.#reportGaps(found, strange)
    const replayed = !this.#options.quick && this.#findings.count === 0
    const parked = replayed ? await this.#replay(newest, expected) : 0
    const values =
      this.#values && (await checkValues(this.#values, store, this.#paths.root, this.#findings, this.#isLedgerWhole))
    return {
      ok: this.#findings.count === 0,
      manifest: newest.number,
      segments: inLedger.size,
      events: this.#events,
      files: this.#checked.size,
      problems: this.#findings.all,
      unfolded,
      parked,
      replayed,
      relaid: this.#relaid,
      values: values ?? null,
    }
  }

  /** Archives that are whole, and not what the manifest says of them: their segments are none of this ledger. */
  async #otherArchives(named: ReadonlyMap<string, FileRef>): Promise<Set<string>> {
    const others = new Set<string>()
    for (const { path, sha256: expected } of named.values()) {
      const bytes = await this.#options.store.get(path)
      if (bytes === undefined) continue
      if (sha256(bytes) === expected) this.#checked.add(path)
      else if ((await judgeArchive(path, bytes, (name) => named.get(`${this.#paths.archives}${name}`))).kind === 'other') {
        others.add(path)
        this.#findings.report(path, otherArchive(path))
      }
    }
    return others
  }

  /** The segments, with where they are and who wrote them. */
  async #readLedger(others: ReadonlySet<string>): Promise<Map<string, Placed>> {
    const { store, scope } = this.#options
    const ulids = new Map<string, Placed>()
    for await (const scanned of scanLedger({ store, scope, paths: this.#paths }, others)) {
      if ('error' in scanned) {
        this.#findings.report(scanned.path, scanned.error.message)
        continue
      }
      const { segment, forgotten = [] } = scanned
      for (const checksum of forgotten) this.#forgotten.add(checksum)
      this.#events += segment.events.length
      ulids.set(segment.ulid, { ulid: segment.ulid, path: scanned.path, sequence: segment.sequence })
      this.#seen.add(segment)
      this.#values?.add(segment.events)
    }
    return ulids
  }

  /** Checks every file that a manifest leads to. Returns those of the newest, which a replay has to make. */
  async #checkFiles({ manifests, newest, salvaged }: CheckedManifests): Promise<Map<string, FileRef>> {
    for (const manifest of manifests) for (const file of directFiles(manifest)) await this.#checkFile(file)
    const expected = new Map([...directFiles(newest)].map((file) => [file.path, file]))
    const { store } = this.#options
    // What a damaged page lists is checked as far as it can be made out.
    const damaged: string[] = []
    const onDamage = (error: ServoError): void => void damaged.push(String(error.facts['path']))
    for await (const found of soundEntries(store, newest.history, onDamage)) {
      if ('page' in found) {
        await this.#checkFile(found.page)
        continue
      }
      for (const [table, file] of Object.entries(found.entry.tables)) {
        if (found.entry.publish < (newest.dropped[table] ?? 0)) continue
        expected.set(file.path, file)
        await this.#checkFile(file)
      }
    }
    for await (const found of soundEntries(store, newest.order, onDamage))
      await this.#checkFile('page' in found ? found.page : found.entry)
    for await (const found of soundEntries(store, archivesOf(newest), onDamage))
      await this.#checkFile('page' in found ? found.page : found.entry)
    for (const { file, manifest } of salvaged) this.#reportSalvaged(await this.#unlike(file), manifest)
    for (const page of damaged) {
      const unlike: string[] = []
      for (const file of salvage((await store.get(page)) ?? new Uint8Array())) unlike.push(...(await this.#unlike(file)))
      // A single one is what the damage has made of its reference.
      if (unlike.length > 1) this.#reportSalvaged(unlike, page)
    }
    return expected
  }

  /** False if a segment or an archive is damaged or missing. */
  get #isLedgerWhole(): boolean {
    const isPart = (path: string): boolean => segmentUlid(path) !== undefined || archiveAt(path) !== undefined
    return !this.#findings.all.some(({ path }) => isPart(path) || path.startsWith(`${this.#paths.ledger}#`))
  }

  async #checkFile(file: FileRef): Promise<void> {
    if (this.#checked.has(file.path)) return
    this.#checked.add(file.path)
    await this.#findings.try(file.path, () => getChecked(this.#options.store, file))
  }

  /** The path of a file that is not what a damaged list says of it; none if it is. */
  async #unlike(file: FileRef): Promise<string[]> {
    if (this.#checked.has(file.path) || !file.path.startsWith(this.#paths.root)) return []
    this.#checked.add(file.path)
    const tried = new Findings()
    await tried.try(file.path, () => getChecked(this.#options.store, file))
    return tried.all.map(({ path }) => path)
  }

  #reportSalvaged(unlike: readonly string[], list: string): void {
    for (const path of unlike) this.#findings.report(path, `${path} is not what ${list}, which is damaged, says of it`)
  }

  /** Every segment was folded at most once, and none that was folded is gone. */
  async #checkOrder(
    manifest: Manifest,
    inLedger: ReadonlyMap<string, unknown>,
  ): Promise<{ readonly folded: ReadonlySet<string>; readonly isWhole: boolean }> {
    const { store } = this.#options
    const folded = new Set<string>()
    let isWhole = true
    const damaged = daysOfArchives(this.#findings.all)
    const fold = (ulid: string): void => {
      const path = this.#paths.segment(ulid)
      if (folded.has(ulid)) this.#findings.report(path, `${path} was folded twice`)
      if (!inLedger.has(ulid)) {
        // The archive that had it is named.
        if (damaged.has(utcDay(ulidTime(ulid)))) this.#unreadable.push(ulid)
        else this.#findings.report(path, `${path} is missing, but it was folded`)
      }
      folded.add(ulid)
    }
    const missed = (): void => {
      isWhole = false
    }
    for await (const found of soundEntries(store, manifest.order, missed)) {
      if ('page' in found) continue
      const publishes = await this.#findings.try(found.entry.path, () => readOrder(store, found.entry))
      if (publishes === undefined) missed()
      for (const { segments } of publishes ?? []) for (const ulid of segments) fold(ulid)
    }
    for (const delta of manifest.l0) for (const ulid of delta.segments) fold(ulid)
    if (this.#findings.count === 0 && folded.size !== manifest.watermarks.segments) {
      const path = this.#paths.manifest(manifest.number)
      this.#findings.report(path, `${path} counts ${manifest.watermarks.segments} segments, its order lists ${folded.size}`)
    }
    return { folded, isWhole }
  }

  /** Segments of settled days that were never folded. Returns the writers of those that belong to another ledger. */
  #reportSettledWithout(
    unfolded: readonly string[],
    { found: { newest, mark }, named, folded, inLedger }: KnownSegments,
  ): ReadonlySet<string> {
    const late = unfolded
      .filter((ulid) => isSettled(newest, utcDay(ulidTime(ulid))))
      .flatMap((ulid) => inLedger.get(ulid) ?? [])
    if (late.length === 0) return new Set()
    const strange = strangers(
      late,
      knownLedger([...inLedger.values()], { folded, named, lists: [newest.writers, mark?.writers] }),
    )
    for (const { path } of strange) this.#findings.report(path, describeStranger(path))
    for (const each of late) {
      if (strange.includes(each)) continue
      const path = this.#paths.segment(each.ulid)
      this.#findings.report(path, `${path} lies in a day that was settled without it; servo rebuild folds it`)
    }
    return new Set(strange.flatMap(({ sequence }) => sequence?.writer ?? []))
  }

  /** Segments that no order names yet, or none that can be read, are missed by their numbers. */
  #reportGaps({ newest, mark }: CheckedManifests, strange: ReadonlySet<string>): void {
    const gaps = this.#seen.gaps({}, newest.writers ?? {}, mark?.writers ?? {}).filter(({ writer }) => !strange.has(writer))
    const reported = this.#findings.all.flatMap(({ path }) => segmentUlid(path) ?? [])
    for (const { path, message } of missingSegments(this.#paths, gaps, [...reported, ...this.#unreadable]))
      this.#findings.report(path, message)
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
      else this.#findings.report(path, `${path} does not follow from the ledger: a replay gives other rows`)
    }
    let parked = 0
    await this.#findings.try(this.#paths.ledger, async () => {
      const compactor = await replay({ store, scope, registry, scratch, onFile }, recordedPublishes(store, manifest))
      parked = compactor.state.hotTable(parkedEvents).size
      for (const path of expected.keys()) {
        if (!made.has(path)) this.#findings.report(path, `${path} does not follow from the ledger: a replay makes no such file`)
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
    return await holdSameRows(read, { path: file.path, bytes, replayed, forgotten: this.#forgotten })
  }
}
