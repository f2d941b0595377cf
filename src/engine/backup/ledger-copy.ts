import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { Registry } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { StoredValues } from '../check/stored-values.ts'
import { checkArchive, originalSha256 } from '../ledger/archive-file.ts'
import { Archives } from '../ledger/archives.ts'
import { openSegment } from '../ledger/segment.ts'
import { archiveAt, type Paths, type Scope, segmentUlid } from '../paths.ts'
import type { BackupTarget } from './backup-target.ts'

export interface LedgerCopyOptions {
  readonly from: ObjectStore
  readonly target: BackupTarget
  readonly paths: Paths
  readonly scope: Scope
  readonly registry: Registry
}

/** Copies the ledger up to one moment, and with each further `take` up to a later one. */
export class LedgerCopy {
  readonly #options: LedgerCopyOptions
  /** Segments that were taken, in files or in archives. */
  readonly #taken = new Set<string>()
  /** The SHA-256 of the segments in archives, as they were written. */
  readonly #packed = new Map<string, string>()
  readonly #archives = new Set<string>()
  /** The values that its events tell of. */
  readonly values: StoredValues

  constructor(options: LedgerCopyOptions) {
    this.#options = options
    this.values = new StoredValues(options.registry)
  }

  get segments(): number {
    return this.#taken.size
  }

  get last(): string | null {
    let last: string | null = null
    for (const ulid of this.#taken) if (last === null || ulid > last) last = ulid
    return last
  }

  /** A ledger only grows: whatever an earlier backup has of it is still there. Throws if it is not, before anything is written. */
  async checkGrown(before: readonly string[]): Promise<void> {
    const { from, target, paths } = this.#options
    const inFiles = new Set(await segmentsOf(from, paths))
    const archives = new Archives({ store: from, paths })
    for (const path of before.toSorted()) {
      const ulid = segmentUlid(path)
      if (ulid === undefined || inFiles.has(ulid) || (await archives.find(ulid)) !== undefined) continue
      throw anotherLedger(`a segment that this project does not have: ${ulid}`, { segment: ulid })
    }
    for (const path of before.filter((each) => archiveAt(each) !== undefined)) {
      const size = await from.size(path)
      if (size !== undefined && size === (target.before(path)?.bytes ?? size)) continue
      throw anotherLedger(`an archive that this project does not have: ${path}`, { path })
    }
  }

  /** Takes every segment up to now that was not taken before. */
  async take(): Promise<void> {
    const { from, target, paths } = this.#options
    // A writer writes one segment after the other: whatever came before a segment of the first listing is in the second one.
    const last = (await segmentsOf(from, paths)).at(-1)
    const ulids = last === undefined ? [] : (await segmentsOf(from, paths)).filter((ulid) => ulid <= last)
    for (const ulid of ulids) if (!this.#taken.has(ulid)) await this.#takeSegment(ulid)
    // After the segments: one that was packed meanwhile is in an archive by now.
    for (const path of await new Archives({ store: from, paths }).all())
      if (!this.#archives.has(path)) await this.#takeArchive(path)
    for (const [ulid, packed] of this.#packed) {
      const path = paths.segment(ulid)
      if (target.named.get(path)?.sha256 === packed) target.leave(path)
    }
  }

  async #takeSegment(ulid: string): Promise<void> {
    const { from, target, paths, scope } = this.#options
    const path = paths.segment(ulid)
    const bytes = (await target.bytesBefore(path)) ?? (await from.get(path))
    if (bytes === undefined) return
    const { events } = openSegment(bytes, path, scope)
    if (!(await this.#copied(path, bytes))) return
    this.values.add(events)
    this.#taken.add(ulid)
  }

  async #takeArchive(path: string): Promise<void> {
    const { from, target, paths, scope } = this.#options
    const bytes = (await target.bytesBefore(path)) ?? (await from.get(path))
    if (bytes === undefined) return
    await checkArchive(path, bytes, (ulid, stored, segment) => {
      this.#packed.set(ulid, originalSha256(segment))
      if (this.#taken.has(ulid)) return
      this.values.add(openSegment(stored, paths.segment(ulid), scope).events)
      this.#taken.add(ulid)
    })
    this.#archives.add(path)
    await this.#copied(path, bytes)
  }

  /** False if the file is gone, because its segment was packed meanwhile. */
  async #copied(path: string, bytes: Uint8Array): Promise<boolean> {
    const { target } = this.#options
    const content = { bytes: bytes.length, sha256: sha256(bytes) }
    if (await target.keep(path, content)) return true
    const copying = await target.copy(path, content)
    if (typeof copying === 'string') return copying === 'copied'
    throw new ServoError('corrupt', 'checksum_mismatch', `${path} is not the same when it is read again`, {
      hint: 'Run `servo verify`, and check the disk.',
      facts: { path },
    })
  }
}

const anotherLedger = (what: string, facts: Readonly<Record<string, string>>): ServoError =>
  new ServoError('conflict', 'another_ledger', `the folder holds ${what}`, {
    hint: 'It is a backup of another project or of a restored copy: name another folder. If this project has lost it, servo verify says so.',
    facts,
  })

/** The names of all segments, in order. */
async function segmentsOf(store: ObjectStore, paths: Paths): Promise<string[]> {
  const ulids: string[] = []
  for await (const { path } of store.list(paths.ledger)) {
    const ulid = segmentUlid(path)
    if (ulid !== undefined) ulids.push(ulid)
  }
  return ulids.sort()
}
