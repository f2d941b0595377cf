import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

/** What the disk itself can do: the system calls of a durable create and nothing else. */
export interface RawDisk {
  /** One after the other with blocking calls: no thread to hop to, nothing to schedule. */
  createSync(bytes: Uint8Array): void
  /** The same calls through Node's thread pool, as anything must make them that also answers requests. */
  create(bytes: Uint8Array): Promise<void>
  /** Appends to one open file and syncs its data: what a database's log does. */
  appendSync(bytes: Uint8Array): void
  close(): void
}

const call = {
  open: promisify(fs.open),
  write: promisify(fs.write),
  fsync: promisify(fs.fsync),
  close: promisify(fs.close),
  link: promisify(fs.link),
  unlink: promisify(fs.unlink),
}

export function rawDisk(folder: string): RawDisk {
  const temp = path.join(folder, '.tmp')
  fs.mkdirSync(temp, { recursive: true })
  const dir = fs.openSync(folder, 'r')
  const log = fs.openSync(path.join(folder, 'log'), 'a')
  let count = 0

  function names(): { draft: string; final: string } {
    count += 1
    return { draft: path.join(temp, `${count}`), final: path.join(folder, `${String(count).padStart(26, '0')}.json`) }
  }

  return {
    createSync(bytes) {
      const { draft, final } = names()
      const fd = fs.openSync(draft, 'wx')
      fs.writeSync(fd, bytes)
      fs.fsyncSync(fd)
      fs.closeSync(fd)
      fs.linkSync(draft, final)
      fs.unlinkSync(draft)
      fs.fsyncSync(dir)
    },

    async create(bytes) {
      const { draft, final } = names()
      const fd = await call.open(draft, 'wx')
      await call.write(fd, bytes)
      await call.fsync(fd)
      await call.close(fd)
      await call.link(draft, final)
      await call.unlink(draft)
      await call.fsync(dir)
    },

    appendSync(bytes) {
      fs.writeSync(log, bytes)
      fs.fdatasyncSync(log)
    },

    close() {
      fs.closeSync(dir)
      fs.closeSync(log)
    },
  }
}
