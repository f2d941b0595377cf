import { assert } from '../../lib/assert.ts'
import { isServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import type { Registry } from '../../model/event.ts'
import type { Clock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { createOwn } from '../files/create-own.ts'
import { type FileRef, fileRef } from '../files/file-ref.ts'
import { checkArchive, encodeArchive, originalSha256, type PackedSegment } from '../ledger/archive-file.ts'
import { Archives } from '../ledger/archives.ts'
import { firstDayOutside, startOfDay, withDays } from '../ledger/days.ts'
import { checkLeads, type Leading } from '../ledger/leading.ts'
import { openSegment } from '../ledger/segment.ts'
import { archivesOf } from '../manifest/manifest.ts'
import { readEntriesBackwards } from '../manifest/page-list.ts'
import { archiveAt, Paths, type Scope, segmentUlid } from '../paths.ts'
import type { Compactor } from '../publish/compactor.ts'
import { withArchive } from './archive-list.ts'
import { type FindForgotten, Forgetting } from './forget-values.ts'

export interface PackerOptions {
  readonly compactor: Compactor
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  readonly clock: Clock
  readonly lease?: Leading | undefined
  readonly rule?: Partial<PackRule>
  readonly findForgotten?: FindForgotten
}

/** When and how much is packed. Tests choose small numbers. */
export interface PackRule {
  /** How long a day must be over. It must be settled too, which takes two hours or more. */
  readonly afterMs: number
  /** What a step reads and holds in memory, and with that the size of an archive before it is compressed. */
  readonly maxBytes: number
  readonly maxSegments: number
}

const packRule: PackRule = { afterMs: 24 * HOUR_MS, maxBytes: 32 << 20, maxSegments: 20_000 }

/** Segments that are read or deleted at the same time: enough to hide the store's latency, few enough to stay out of the way. */
const AT_ONCE = 16
/** Days that a step passes which have nothing to pack. Each costs two listings, once. */
const MAX_EMPTY_DAYS = 16

/**
 * Packs the segments of settled days into archives, in the background and in steps. What a step does:
 *
 * 1. It reads segments of the oldest day that is not packed, and creates an archive of them under a new name.
 * 2. It reads the archive back and compares every segment.
 * 3. It has a manifest name the archive. From then on nobody can lose it unnoticed.
 * 4. It deletes the segments.
 *
 * Killed at any point, it leaves every segment in a file, in an archive or in both. The next one goes on with what it finds: it names an
 * archive that nobody has named yet, deletes what an archive has, and packs the rest. Once a day has no segments left, the manifest says
 * that it is packed, and nobody looks at it again.
 */
export class Packer {
  readonly #options: PackerOptions
  readonly #rule: PackRule
  readonly #place: { readonly store: ObjectStore; readonly paths: Paths; readonly scope: Scope }
  readonly #forgetting: Forgetting
  /** The day that is being packed, and what is known of its archives. */
  #current: { readonly day: string; readonly archives: Archives } | undefined

  constructor(options: PackerOptions) {
    const { store, scope, registry, findForgotten } = options
    this.#options = options
    this.#rule = { ...packRule, ...options.rule }
    this.#place = { store, scope, paths: new Paths(scope) }
    this.#forgetting = new Forgetting(registry, findForgotten)
  }

  /** One step of bounded size. False if nothing is left to do for now. */
  async step(): Promise<boolean> {
    for (let passed = 0; passed < MAX_EMPTY_DAYS; passed++) {
      const day = this.#dueDay()
      if (day === undefined) return false
      await checkLeads(this.#options.lease)
      const work = await this.#packSome(day)
      if (work === 'busy') return false
      if (work === 'some') return true
      if (!(await this.#markPacked(day))) return false
    }
    return true
  }

  /** The oldest day that is to be packed. */
  #dueDay(): string | undefined {
    const { compactor, clock } = this.#options
    const { settled_days = [], packed_days = [] } = compactor.manifest
    const day = firstDayOutside(settled_days, packed_days)
    return day !== undefined && clock.now() - startOfDay(day) - DAY_MS > this.#rule.afterMs ? day : undefined
  }

  /** Packs or deletes some segments of a day. `busy` if that cannot go on now. */
  async #packSome(day: string): Promise<'some' | 'nothing' | 'busy'> {
    const { store, paths } = this.#place
    if (this.#current?.day !== day) this.#current = { day, archives: new Archives(this.#place) }
    const { archives } = this.#current
    const [ulids, parts] = await Promise.all([this.#segmentsOf(day), archives.ofDay(day)])
    if (!(await this.#nameAll(parts))) return 'busy'
    const { packed, left } = await this.#sorted(archives, parts, ulids)
    await this.#delete(packed)
    const taken = await this.#take(left)
    if (taken.length === 0) return packed.length === 0 ? 'nothing' : 'some'
    const part = Math.max(0, ...parts.map((path) => archiveAt(path)?.part ?? 0)) + 1
    const path = paths.archive(day, part)
    const bytes = await encodeArchive(path, taken)
    // If there is another one of this name, a leader that was deposed has made it. The next step finds it.
    if (!(await createOwn(store, path, bytes))) return 'some'
    await this.#readBack(path, taken)
    if (!(await this.#name(fileRef(path, bytes, taken.length)))) return 'busy'
    await this.#delete(taken.map(({ ulid }) => ulid))
    return 'some'
  }

  /** The first segments in the folder of a day, as many as a step can take. */
  async #segmentsOf(day: string): Promise<string[]> {
    const { store, paths } = this.#place
    const ulids: string[] = []
    for await (const { path } of store.list(paths.day(day))) {
      const ulid = segmentUlid(path)
      if (ulid !== undefined) ulids.push(ulid)
      if (ulids.length >= this.#rule.maxSegments) break
    }
    return ulids
  }

  /** Sees to it that the manifest names these archives, as far as they are sound: those that a leader left which was killed are not named. */
  async #nameAll(parts: readonly string[]): Promise<boolean> {
    const { store } = this.#place
    const unnamed = new Set(parts)
    if (unnamed.size > 0) {
      for await (const { path } of readEntriesBackwards(store, archivesOf(this.#options.compactor.manifest))) {
        unnamed.delete(path)
        if (unnamed.size === 0) break
      }
    }
    for (const path of unnamed) {
      const bytes = await store.get(path)
      const segments = bytes && (await unlessDamaged(() => checkArchive(path, bytes)))
      if (bytes === undefined || segments === undefined) continue
      if (!(await this.#name(fileRef(path, bytes, segments)))) return false
    }
    return true
  }

  /** Which of these segments are in an archive just as they are in their files, and which are in none. */
  async #sorted(archives: Archives, parts: readonly string[], ulids: readonly string[]) {
    const packed: string[] = []
    const left: string[] = []
    const known = await archives.findAll(parts, ulids)
    for (const ulid of ulids) {
      const found = known.get(ulid)
      // Read, not only listed: what is damaged in the archive is packed again.
      if (found === undefined || !(await unlessDamaged(() => archives.bytesOf(found)))) left.push(ulid)
      else if ((await this.#sha256Of(ulid)) === originalSha256(found.segment)) packed.push(ulid)
    }
    return { packed, left }
  }

  async #sha256Of(ulid: string): Promise<string | undefined> {
    const bytes = await this.#place.store.get(this.#place.paths.segment(ulid))
    return bytes && sha256(bytes)
  }

  /** As many of these segments as fit into an archive. Those that are damaged stay where they are: `verify` names them. */
  async #take(ulids: readonly string[]): Promise<PackedSegment[]> {
    const { store, paths, scope } = this.#place
    const taken: PackedSegment[] = []
    let size = 0
    for (let start = 0; start < ulids.length; start += AT_ONCE) {
      const some = ulids.slice(start, start + AT_ONCE).map(async (ulid) => {
        const path = paths.segment(ulid)
        const bytes = await store.get(path)
        const segment = bytes && (await unlessDamaged(() => openSegment(bytes, path, scope)))
        return bytes && segment && { bytes, segment }
      })
      const sound = (await Promise.all(some)).filter((each) => each !== undefined)
      for (const segment of await this.#forgetting.packed(sound)) {
        if (taken.length > 0 && (size + segment.bytes.length > this.#rule.maxBytes || taken.length >= this.#rule.maxSegments))
          return taken
        taken.push(segment)
        size += segment.bytes.length
      }
    }
    return taken
  }

  /** Throws unless the archive in the store has every byte of these segments. */
  async #readBack(path: string, taken: readonly PackedSegment[]): Promise<void> {
    const bytes = (await this.#place.store.get(path)) ?? new Uint8Array()
    const expected = new Map(taken.map((segment) => [segment.ulid, segment.bytes]))
    await checkArchive(path, bytes, (ulid, stored) => {
      assert(Buffer.compare(stored, expected.get(ulid) ?? new Uint8Array()) === 0, `${path} has another segment ${ulid}`)
      expected.delete(ulid)
    })
    assert(expected.size === 0, `${path} lacks segments`)
  }

  async #name(archive: FileRef): Promise<boolean> {
    return await this.#options.compactor.amend((manifest, now) => withArchive(manifest, this.#place.paths, archive, now))
  }

  async #delete(ulids: readonly string[]): Promise<void> {
    const { store, paths } = this.#place
    const { compactor, lease } = this.#options
    compactor.fold.leave(ulids)
    for (let start = 0; start < ulids.length; start += AT_ONCE) {
      await checkLeads(lease)
      await Promise.all(ulids.slice(start, start + AT_ONCE).map((ulid) => store.delete(paths.segment(ulid))))
    }
  }

  /** Goes with the next publish: until then, the day is looked at again by who starts. */
  async #markPacked(day: string): Promise<boolean> {
    return await this.#options.compactor.amend((manifest) => ({
      ...manifest,
      packed_days: withDays(manifest.packed_days ?? [], [day]),
    }))
  }
}

async function unlessDamaged<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    if (isServoError(error, 'corrupt')) return undefined
    throw error
  }
}
