import { closeSync, fstatSync, fsyncSync, linkSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { OWN_FILE, toCreate } from './disk.ts'
import type { WriteOrder, WriteOutcome } from './writer.ts'

/*
 * Writes one object after the other with blocking calls: they hold up nothing else here. See writer.ts for why.
 */
parentPort?.on('message', (order: WriteOrder) => {
  const fd = unlessItFails(() => openSync(order.temp, toCreate, OWN_FILE))
  parentPort?.postMessage(fd === undefined ? 'not_written' : write(fd, order))
  if (fd === undefined) return
  // What stays is swept one day.
  unlessItFails(() => closeSync(fd))
  unlessItFails(() => unlinkSync(order.temp))
})

function write(fd: number, { temp, target, bytes, folder }: WriteOrder): WriteOutcome {
  const isLinked = unlessItFails(() => {
    if (writeSync(fd, bytes, 0, bytes.length, 0) < bytes.length) return false
    fsyncSync(fd)
    return link(fd, temp, target)
  })
  if (!isLinked) return 'not_written'
  try {
    fsyncSync(folder)
    return 'written'
  } catch (error) {
    // This must not be repeated: the system reports a lost write once, and a second sync could succeed over it.
    return { error: error instanceof Error ? error : new Error(String(error)) }
  }
}

function link(fd: number, temp: string, target: string): boolean {
  try {
    linkSync(temp, target)
    return true
  } catch {
    // NFS repeats a request whose answer was lost, and the repeat finds our own link: then our file has two names.
    return fstatSync(fd).nlink > 1
  }
}

function unlessItFails<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
