import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { contentOf, type FileContent, isSameContent } from '../files/content.ts'
import { checkLeads, type Leading } from '../ledger/leading.ts'
import { type BackedUpFile, placeInBackup } from './file-list.ts'

/** Copies whole files from one store to the other. */
export interface FileCopier {
  /**
   * Reads a file, and says under which name the copy of it is to be; undefined leaves it out. It appears under that name complete or not
   * at all, and is durable after `settle`. Returns what was read; undefined if there is nothing to copy.
   */
  copy(path: string, place: (read: FileContent) => Promise<string | undefined>): Promise<FileContent | undefined>
  settle(): Promise<void>
}

/** A copier that names no copy once another process leads: that one may have written another file of this name. */
export const copierOfLeader = (files: FileCopier, lease: Leading | undefined): FileCopier => ({
  copy: (path, place) =>
    files.copy(path, async (read) => {
      await checkLeads(lease)
      return await place(read)
    }),
  settle: () => files.settle(),
})

/** What became of a file that was to be copied: `missing` in the original, or other than it must be, and then it is not copied. */
export type Copying = 'copied' | 'missing' | { readonly differs: FileContent }

/**
 * The backup that is being made, in the folder of the one before. No file of the one before is touched, unless it is damaged: until the new
 * record is there, a restore takes the old one, whole.
 */
export class BackupTarget {
  readonly #to: ObjectStore
  readonly #files: FileCopier
  readonly #before: ReadonlyMap<string, BackedUpFile>
  readonly #named = new Map<string, BackedUpFile>()
  readonly copied = { files: 0, bytes: 0 }
  /** Files of the backup before that were damaged, and are whole again. */
  readonly mended: string[] = []
  kept = 0

  constructor(to: ObjectStore, files: FileCopier, before: readonly BackedUpFile[]) {
    this.#to = to
    this.#files = files
    this.#before = new Map(before.map((file) => [file.path, file]))
  }

  /** The files of the new backup. */
  get named(): ReadonlyMap<string, BackedUpFile> {
    return this.#named
  }

  before(path: string): BackedUpFile | undefined {
    return this.#before.get(path)
  }

  /** The paths below a folder in the backup before. */
  *pathsBefore(folder: string): Generator<string> {
    for (const path of this.#before.keys()) if (path.startsWith(folder)) yield path
  }

  /** The bytes that the backup before has of a file; undefined if it has none, or they are damaged. */
  async bytesBefore(path: string): Promise<Uint8Array | undefined> {
    const known = this.#before.get(path)
    const bytes = known && (await this.#to.get(placeInBackup(known)))
    return bytes !== undefined && sha256(bytes) === known?.sha256 ? bytes : undefined
  }

  /** Takes over what is there already, if it is this content, or any if none is given. */
  async keep(path: string, expected?: FileContent): Promise<boolean> {
    const file = this.#before.get(path) ?? (expected && { path, bytes: expected.bytes, sha256: expected.sha256 })
    if (file === undefined || (expected !== undefined && !isSameContent(file, expected))) return false
    if ((await this.#to.size(placeInBackup(file))) !== file.bytes) return false
    // Left by a backup that was interrupted: nobody knows what it is.
    if (!this.#before.has(path) && !isSameContent(await contentOf(this.#to, path), file)) return false
    this.#named.set(path, file)
    this.kept += 1
    return true
  }

  /** Copies a file, if it has this content, or any if none is given. */
  async copy(path: string, expected?: FileContent): Promise<Copying> {
    const read = await this.#files.copy(path, async (content) =>
      expected === undefined || isSameContent(content, expected) ? placeInBackup(this.#newFile(path, content)) : undefined,
    )
    if (read === undefined) return 'missing'
    if (expected !== undefined && !isSameContent(read, expected)) return { differs: read }
    this.#copiedAs(this.#newFile(path, read))
    return 'copied'
  }

  /** Writes a file of this content, unless it is there. */
  async write(path: string, content: FileContent, bytes: Uint8Array): Promise<void> {
    if (await this.keep(path, content)) return
    const file = this.#newFile(path, content)
    await this.#to.put(placeInBackup(file), bytes)
    this.#copiedAs(file)
  }

  /** Leaves a file out of the new backup. */
  leave(path: string): void {
    this.#named.delete(path)
  }

  async settle(): Promise<void> {
    await this.#files.settle()
  }

  /** Reads every file of the new backup, and yields those that are not what they must be. */
  async *damaged(): AsyncGenerator<BackedUpFile> {
    for (const file of [...this.#named.values()])
      if (!isSameContent(await contentOf(this.#to, placeInBackup(file)), file)) yield file
  }

  #copiedAs(file: BackedUpFile): void {
    const known = this.#before.get(file.path) ?? this.#named.get(file.path)
    if (known !== undefined && isSameContent(known, file)) this.mended.push(file.path)
    this.#named.set(file.path, file)
    this.copied.files += 1
    this.copied.bytes += file.bytes
  }

  /** Another content gets a name of its own: a restore of the backup before needs the one that is there. */
  #newFile(path: string, { bytes, sha256 }: FileContent): BackedUpFile {
    const known = this.#before.get(path)
    if (known === undefined) return { path, bytes, sha256 }
    return isSameContent(known, { bytes, sha256 }) ? known : { path, bytes, sha256, at: `${path}.${sha256.slice(0, 16)}` }
  }
}
