import { promisify } from 'node:util'
import { zstdCompress, zstdDecompress } from 'node:zlib'
import { canonicalJson } from '../../lib/json.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { contentOf, type FileContent } from '../files/content.ts'
import type { Damage } from '../ledger/read-segment.ts'

/** A file of a backup. */
export interface BackedUpFile extends FileContent {
  /** Where it belongs in a folder of state. */
  readonly path: string
  /** Where it lies in the backup, if the backup before had another file in its place. */
  readonly at?: string
}

/** All that a restore takes, and the values that it cannot take. */
export interface FileList {
  readonly files: readonly BackedUpFile[]
  /** Values that were damaged or missing when they were to be copied. */
  readonly lost: readonly Damage[]
}

export const placeInBackup = ({ path, at = path }: BackedUpFile): string => at

/** One line of JSON for each file, compressed: a project of a million runs has a million logs. */
export async function encodeList({ files, lost }: FileList): Promise<Uint8Array> {
  const lines = [...files, ...lost.map(({ path, message }) => ({ path, lost: message }))]
  const text = lines
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map((line) => `${canonicalJson(line)}\n`)
    .join('')
  return await promisify(zstdCompress)(Buffer.from(text))
}

/** The list of these bytes, whose checksum is known to be right. */
export async function decodeList(bytes: Uint8Array): Promise<FileList> {
  const text = (await promisify(zstdDecompress)(bytes)).toString('utf8')
  const lines = text.split('\n').filter((line) => line !== '')
  const all: (BackedUpFile | { readonly path: string; readonly lost: string })[] = lines.map((line) => JSON.parse(line))
  return {
    files: all.filter((line) => 'sha256' in line),
    lost: all.flatMap((line) => ('lost' in line ? [{ path: line.path, message: line.lost }] : [])),
  }
}

/** The files that lie below some folders, as they are. */
export async function listAsItIs(store: ObjectStore, folders: readonly string[]): Promise<FileList> {
  const files: BackedUpFile[] = []
  for (const folder of folders) {
    for await (const { path } of store.list(folder)) {
      const content = await contentOf(store, path)
      if (content !== undefined) files.push({ path, ...content })
    }
  }
  return { files, lost: [] }
}
