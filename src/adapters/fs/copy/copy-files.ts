import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { asRoot, isMissing, OWN_FILE, OWN_FOLDER, toCreate, toReadAtOnce } from '../disk.ts'
import { explainFailure } from '../failure.ts'

const CHUNK_BYTES = 1 << 20

interface Read {
  readonly bytes: number
  readonly sha256: string
}

type Place = (read: Read) => Promise<string | undefined>

/** Copies files of one folder to another. What it has copied is durable after `settle`. */
export function fileCopier(from: string, to: string) {
  const touched = new Set<string>()
  let count = 0

  async function copyTo(source: FileHandle, place: Place): Promise<Read> {
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
      const read = { bytes, sha256: hash.digest('hex') }
      await target.sync()
      await target.close()
      // Last of all: whoever says where it goes may know by then that it must not.
      const path = await place(read)
      if (path === undefined) await rm(temp, { force: true })
      else await giveName(temp, join(to, path))
      return read
    } catch (error) {
      await target.close().catch(() => undefined)
      await rm(temp, { force: true })
      throw error
    }
  }

  async function giveName(temp: string, name: string): Promise<void> {
    await makeFolder(dirname(name))
    await rename(temp, name)
    touched.add(dirname(name))
  }

  async function makeFolder(folder: string): Promise<void> {
    const first = await mkdir(folder, { recursive: true, mode: OWN_FOLDER })
    // The names of new folders are in the folders above them.
    if (first !== undefined) for (let at = folder; at.length >= first.length; at = dirname(at)) touched.add(dirname(at))
  }

  return {
    /** Copies a file, whole, to the name that `place` chooses, if it chooses one. Returns what was read; undefined if there is no file. */
    async copy(path: string, place: Place): Promise<Read | undefined> {
      try {
        await mkdir(join(to, '.tmp'), { recursive: true, mode: OWN_FOLDER })
        const source = await open(join(from, path), toReadAtOnce).catch((error: unknown) => {
          if (isMissing(error)) return undefined
          throw error
        })
        if (source === undefined) return undefined
        try {
          return await copyTo(source, place)
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
