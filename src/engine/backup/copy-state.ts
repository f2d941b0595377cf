import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksumMismatch, type FileRef, fileMissing } from '../files/file-ref.ts'
import { checkArchive, originalSha256 } from '../ledger/archive-file.ts'
import { Archives } from '../ledger/archives.ts'
import { decodeSegment } from '../ledger/segment.ts'
import { archivesOf, directFiles, type Manifest } from '../manifest/manifest.ts'
import { listPages, readEntries } from '../manifest/page-list.ts'
import { boundaryOf, encodeManifest, newestManifest } from '../manifest/stored-manifests.ts'
import { numberOf, Paths, type Scope, segmentUlid } from '../paths.ts'

export interface CopyStateOptions {
  readonly from: ObjectStore
  readonly to: ObjectStore
  readonly scope: Scope
  readonly files: FileCopier
  /** Also removes stored values and logs that are no longer there. Without it, the copy keeps what the original has lost. */
  readonly prune?: boolean
}

/** Copies whole files from one store to the other. */
export interface FileCopier {
  /** Complete or not at all; undefined if there is nothing to copy. Durable after `settle`. */
  copy(path: string): Promise<{ readonly bytes: number; readonly sha256: string } | undefined>
  settle(): Promise<void>
}

export interface CopyReport {
  /** Of the newest manifest in the copy; 0 if there is none. */
  readonly manifest: number
  readonly segments: number
  readonly last_segment: string | null
  readonly copied: { readonly files: number; readonly bytes: number }
  /** Files that were there already. */
  readonly kept: number
  readonly removed: number
}

/** A publish that removes files meanwhile leaves a newer manifest behind. Readers have a quarter of an hour before that. */
const MANIFESTS_TRIED = 5

/**
 * Copies a workspace that may be in use, so that the copy is a state that the workspace was in: a manifest with all it names, every
 * segment up to one moment, and the stored values and logs of that moment. Objects never change, so what is there already is not
 * copied again. Until the new manifest is there, the copy is the one before with a few objects more.
 */
export async function copyState(options: CopyStateOptions): Promise<CopyReport> {
  return await new StateCopy(options).run()
}

class StateCopy {
  readonly #options: CopyStateOptions
  readonly #paths: Paths
  readonly #copied = { files: 0, bytes: 0 }
  #kept = 0
  #removed = 0

  constructor(options: CopyStateOptions) {
    this.#options = options
    this.#paths = new Paths(options.scope)
  }

  async run(): Promise<CopyReport> {
    const { files } = this.#options
    await this.#checkSameWorkspace()
    const there = new Set<string>()
    // Before the ledger too: a value that is removed while this goes on may be one that the ledger of the copy still keeps.
    for (const path of await this.#copyFolder(`${this.#paths.root}data/`)) there.add(path)
    const { manifest, named } = await this.#copyTables()
    const segments = await this.#copyLedger()
    // After the segments: one that was packed meanwhile is in an archive by now.
    const packed = await this.#copyArchives(new Set(segments))
    const others = ['data/', 'logs/', 'secrets/'].map((folder) => this.#paths.root + folder)
    for (const folder of others) for (const path of await this.#copyFolder(folder, there)) there.add(path)
    await files.settle()
    if (manifest.number > 0) await this.#showManifest(manifest, named)
    await this.#removePacked(new Set(segments))
    if (this.#options.prune) for (const folder of others) await this.#removeFrom(folder, (path) => there.has(path))
    return {
      manifest: manifest.number,
      segments: segments.length + packed,
      last_segment: segments.at(-1) ?? manifest.watermarks.events_processed_through,
      copied: this.#copied,
      kept: this.#kept,
      removed: this.#removed,
    }
  }

  /** A ledger only grows: whatever an earlier copy has of it is still there. */
  async #checkSameWorkspace(): Promise<void> {
    const { from, to } = this.#options
    const theirs = await segmentsOf(to, this.#paths)
    const archives = new Archives({ store: from, paths: this.#paths })
    for (const ulid of [theirs.at(0), theirs.at(-1)]) {
      if (ulid === undefined || (await from.size(this.#paths.segment(ulid))) !== undefined) continue
      if ((await archives.find(ulid)) !== undefined) continue
      throw new ServoError(
        'conflict',
        'another_ledger',
        `the folder holds a segment that this project does not have: ${ulid}`,
        {
          hint: 'It is a backup of another project or of a restored copy: name another folder. If this project has lost it, servo verify says so.',
          facts: { segment: ulid },
        },
      )
    }
  }

  /** The newest manifest, and all files it names. */
  async #copyTables(): Promise<{ manifest: Manifest; named: ReadonlySet<string> }> {
    const { from, scope } = this.#options
    for (let tried = 1; ; tried++) {
      const manifest = await newestManifest(from, this.#paths, scope)
      try {
        const named = new Set<string>()
        for await (const ref of filesOf(from, manifest)) {
          named.add(ref.path)
          await this.#copyChecked(ref)
        }
        return { manifest, named }
      } catch (error) {
        const newest = await newestManifest(from, this.#paths, scope)
        // Garbage collection has removed what an older manifest named.
        if (newest.number === manifest.number || tried === MANIFESTS_TRIED) throw error
      }
    }
  }

  async #copyChecked(ref: FileRef): Promise<void> {
    if ((await this.#options.to.size(ref.path)) === ref.bytes) {
      this.#kept += 1
      return
    }
    const copied = await this.#copy(ref.path)
    if (copied?.sha256 === ref.sha256) return
    // Its size may be right: without this, the next backup would take it for the file.
    await this.#options.to.delete(ref.path)
    throw copied === undefined
      ? fileMissing(ref)
      : checksumMismatch(ref, `its SHA-256 is ${copied.sha256} instead of ${ref.sha256}`)
  }

  /**
   * Every segment up to one moment. A writer writes one segment after the other: whatever came before a segment of the first listing
   * is in the second one.
   */
  async #copyLedger(): Promise<string[]> {
    const { from, to, scope } = this.#options
    const last = (await segmentsOf(from, this.#paths)).at(-1)
    const segments = last === undefined ? [] : (await segmentsOf(from, this.#paths)).filter((ulid) => ulid <= last)
    for (const ulid of segments) {
      const path = this.#paths.segment(ulid)
      if ((await to.size(path)) !== undefined) {
        this.#kept += 1
        continue
      }
      const bytes = await from.get(path)
      if (bytes !== undefined) decodeSegment(bytes, path, scope)
      await this.#copy(path)
    }
    return segments
  }

  /** Every archive. Returns how many segments they have that are in no file. */
  async #copyArchives(inFiles: ReadonlySet<string>): Promise<number> {
    const { from, to } = this.#options
    const archives = new Archives({ store: from, paths: this.#paths })
    let segments = 0
    for (const path of await archives.all()) {
      for (const ulid of (await archives.segments(path)).keys()) if (!inFiles.has(ulid)) segments += 1
      const size = await from.size(path)
      if (size !== undefined && (await to.size(path)) === size) {
        this.#kept += 1
        continue
      }
      const bytes = await from.get(path)
      if (bytes !== undefined) await checkArchive(path, bytes)
      await this.#copy(path)
    }
    return segments
  }

  /** Segments that the copy had in files, and has in archives now. */
  async #removePacked(inFiles: ReadonlySet<string>): Promise<void> {
    const { to } = this.#options
    const archives = new Archives({ store: to, paths: this.#paths })
    for (const ulid of await segmentsOf(to, this.#paths)) {
      if (inFiles.has(ulid)) continue
      const path = this.#paths.segment(ulid)
      const [found, bytes] = [await archives.find(ulid), await to.get(path)]
      if (found === undefined || bytes === undefined || originalSha256(found.segment) !== sha256(bytes)) continue
      await archives.bytesOf(found)
      await to.delete(path)
      this.#removed += 1
    }
  }

  /** Whatever is in a folder. Objects have one size for ever; the newest chunk of a log may still grow. */
  async #copyFolder(folder: string, done?: ReadonlySet<string>): Promise<string[]> {
    const { from, to } = this.#options
    const there: string[] = []
    for await (const { path } of from.list(folder)) {
      if (done?.has(path)) continue
      there.push(path)
      const size = await from.size(path)
      if (size !== undefined && (await to.size(path)) === size) this.#kept += 1
      else await this.#copy(path)
    }
    return there
  }

  /** Makes the manifest the newest of the copy, and removes what only earlier ones named. */
  async #showManifest(manifest: Manifest, named: ReadonlySet<string>): Promise<void> {
    const { to } = this.#options
    const { number } = manifest
    const bytes = encodeManifest(manifest)
    await to.create(this.#paths.manifest(number), bytes)
    await to.put(this.#paths.manifestCopy, bytes)
    if ((await boundaryOf(to, this.#paths)) < number) await to.create(this.#paths.boundary(number), new Uint8Array())
    await this.#removeFrom(this.#paths.manifests, (path) => numberOf(path) >= number)
    await this.#removeFrom(this.#paths.boundaries, (path) => numberOf(path) >= number)
    await this.#removeFrom(this.#paths.state, (path) => named.has(path))
  }

  async #removeFrom(folder: string, isKept: (path: string) => boolean): Promise<void> {
    const { to } = this.#options
    for await (const { path } of to.list(folder)) {
      if (isKept(path)) continue
      await to.delete(path)
      this.#removed += 1
    }
  }

  async #copy(path: string): Promise<{ readonly sha256: string } | undefined> {
    const copied = await this.#options.files.copy(path)
    if (copied !== undefined) {
      this.#copied.files += 1
      this.#copied.bytes += copied.bytes
    }
    return copied
  }
}

/** Every file that a manifest needs. */
async function* filesOf(store: ObjectStore, manifest: Manifest): AsyncGenerator<FileRef> {
  yield* directFiles(manifest)
  for (const list of [manifest.history, manifest.order, archivesOf(manifest)])
    yield* listPages<{ publish: number }>(store, list)
  for await (const entry of readEntries(store, manifest.history)) {
    for (const [table, file] of Object.entries(entry.tables)) if (entry.publish >= (manifest.dropped[table] ?? 0)) yield file
  }
  yield* readEntries(store, manifest.order)
}

/** The names of all segments, in order. */
async function segmentsOf(store: ObjectStore, paths: Paths): Promise<string[]> {
  const ulids: string[] = []
  for await (const { path } of store.list(paths.ledger)) {
    const ulid = segmentUlid(path)
    if (ulid !== undefined) ulids.push(ulid)
  }
  return ulids.sort()
}
