import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { asRoot, isMissing, OWN_FILE, OWN_FOLDER, toCreate, toReadAtOnce } from '../disk.ts'
import { explainFailure } from '../failure.ts'

const CHUNK_BYTES = 1 << 20

/** Copies files of one folder to the same places in another. What it has copied is durable after `settle`. */
export function fileCopier(from: string, to: string) {
  const touched = new Set<string>()
  let count = 0

  async function copyTo(source: FileHandle, path: string): Promise<{ bytes: number; sha256: string }> {
    const temp = join(to, '.tmp', `copy-${process.pid}-${++count}`)
    const target = await open(temp, toCreate, OWN_FILE)
    const hash = createHash('sha256')
    let bytes = 0
    try {
      const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
      for (;;) {
        const { bytesRead } = await source.read(buffer, 0, CHUNK_BYTES, bytes)
        if (bytesRead === 0) break
        hash.update(buffer.subarray(0, bytesRead))
        await target.writeFile(buffer.subarray(0, bytesRead))
        bytes += bytesRead
      }
      await target.sync()
      await target.close()
      await makeFolder(dirname(join(to, path)))
      await rename(temp, join(to, path))
    } catch (error) {
      await target.close().catch(() => undefined)
      await rm(temp, { force: true })
      throw error
    }
    touched.add(dirname(join(to, path)))
    return { bytes, sha256: hash.digest('hex') }
  }

  async function makeFolder(folder: string): Promise<void> {
    const first = await mkdir(folder, { recursive: true, mode: OWN_FOLDER })
    // The names of new folders are in the folders above them.
    if (first !== undefined) for (let at = folder; at.length >= first.length; at = dirname(at)) touched.add(dirname(at))
  }

  return {
    /** The file under its name, whole; undefined if there is none to copy. */
    async copy(path: string): Promise<{ readonly bytes: number; readonly sha256: string } | undefined> {
      try {
        await mkdir(join(to, '.tmp'), { recursive: true, mode: OWN_FOLDER })
        const source = await open(join(from, path), toReadAtOnce).catch((error: unknown) => {
          if (isMissing(error)) return undefined
          throw error
        })
        if (source === undefined) return undefined
        try {
          return await copyTo(source, path)
        } finally {
          await source.close()
        }
      } catch (error) {
        throw explainFailure(error, { verb: 'create', path, dir: to })
      }
    },

    async settle(): Promise<void> {
      for (const folder of touched) {
        const handle = await open(folder, asRoot)
        await handle.sync().finally(() => handle.close())
      }
      touched.clear()
    },
  }
}
