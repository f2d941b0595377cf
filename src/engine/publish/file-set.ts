import type { ObjectStore } from '../../ports/object-store.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { type FileRef, fileRef } from '../files/file-ref.ts'
import { sortedFileRef } from '../sorted/index-footer.ts'
import type { Encoder } from './encoder.ts'
import { copyFile, copyInTurns, type FileCopy, type FileToCopy } from './file-copy.ts'

interface WaitingFile {
  readonly path: string
  copy(): FileCopy | Promise<FileCopy>
  place(ref: FileRef, bytes: Uint8Array): void
}

/** The files of a draft. A file that a later step of the draft makes obsolete is discarded. */
export class FileSet {
  readonly list: { path: string; bytes: Uint8Array }[] = []
  readonly #waiting: WaitingFile[] = []
  readonly #encoder: Encoder

  constructor(encoder: Encoder) {
    this.#encoder = encoder
  }

  add(path: string, bytes: Uint8Array, rows: number): FileRef {
    this.list.push({ path, bytes })
    return fileRef(path, bytes, rows)
  }

  /** Copies rows for a file. `place` is called with the reference once the file is encoded. */
  addRows(path: string, file: FileToCopy, place: (ref: FileRef) => void): void {
    const copy = copyFile(file)
    this.#waiting.push({ path, copy: () => copy, place })
  }

  /** The same for rows that have left memory, so that nobody changes them any more: they are copied later, in turns. */
  addSealedRows(path: string, file: FileToCopy, place: (ref: FileRef) => void): void {
    this.#waiting.push({ path, copy: () => copyInTurns(file), place })
  }

  /** The same for a sorted file of the lowest level. */
  addSortedRows(path: string, file: FileToCopy, place: (ref: SortedFileRef) => void): void {
    const copy = (): Promise<FileCopy> => copyInTurns({ ...file, isSortedFile: true })
    this.#waiting.push({ path, copy, place: (ref, bytes) => place(sortedFileRef(ref, bytes, 0)) })
  }

  /** Makes files of the rows that were added. */
  async encode(): Promise<void> {
    for (const { path, copy: copied, place } of this.#waiting.splice(0)) {
      const copy = await copied()
      const bytes = await this.#encoder.encode(copy)
      place(this.add(path, bytes, copy.rows), bytes)
    }
  }

  addSortedFile(path: string, bytes: Uint8Array, rows: number, level: number): SortedFileRef {
    return sortedFileRef(this.add(path, bytes, rows), bytes, level)
  }

  discard(path: string): void {
    const at = this.list.findIndex((file) => file.path === path)
    if (at >= 0) this.list.splice(at, 1)
  }

  /** The store as it will be once these files are written. */
  over(store: ObjectStore): ObjectStore {
    const find = (path: string): Uint8Array | undefined => this.list.find((file) => file.path === path)?.bytes
    return {
      create: (path, bytes) => store.create(path, bytes),
      put: (path, bytes) => store.put(path, bytes),
      delete: (path) => store.delete(path),
      list: (prefix, options) => store.list(prefix, options),
      folders: (prefix) => store.folders(prefix),
      get: async (path) => find(path) ?? (await store.get(path)),
      getRange: async (path, start, length) =>
        find(path)?.subarray(start, start + length) ?? (await store.getRange(path, start, length)),
      size: async (path) => find(path)?.length ?? (await store.size(path)),
    }
  }
}
