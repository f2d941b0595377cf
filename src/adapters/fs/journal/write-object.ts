import { closeSync, fstatSync, fsyncSync, linkSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { messageOf } from '../../../lib/error.ts'
import { errnoOf, OWN_FILE, toCreate } from '../disk.ts'
import type { FailedCall, ThreadAnswer, WriteOrder } from '../writer.ts'
import type { Journal } from './journal.ts'

/** The calls that create an object. They block. */
export const objectDisk = {
  open: openSync,
  write: (fd: number, from: Uint8Array, offset: number, length: number, at: number): number =>
    writeSync(fd, from, offset, length, at),
  fsync: fsyncSync,
  link: linkSync,
  linksOf: (fd: number): number => fstatSync(fd).nlink,
  close: closeSync,
  unlink: unlinkSync,
}
export type ObjectDisk = typeof objectDisk

/** The answer to a write. */
type Written = Omit<Extract<ThreadAnswer, { type: 'outcome' }>, 'type'>

/** Creates an object, and answers before it tidies up. Without a journal, the object is synced, then placed, then its folder is synced. */
export function writeObject(
  order: WriteOrder,
  journal: Journal | undefined,
  answer: (written: Written) => void,
  disk: ObjectDisk = objectDisk,
): void {
  const fd = unlessItFails(() => disk.open(order.temp, toCreate, OWN_FILE))
  answer(fd === undefined ? { outcome: 'not_written' } : write(fd, order, journal, disk))
  if (fd === undefined) return
  // What stays is swept one day.
  unlessItFails(() => disk.close(fd))
  unlessItFails(() => disk.unlink(order.temp))
}

function write(fd: number, order: WriteOrder, journal: Journal | undefined, disk: ObjectDisk): Written {
  const { temp, target, bytes, path } = order
  const isWhole = unlessItFails(() => disk.write(fd, bytes, 0, bytes.length, 0) === bytes.length)
  if (!isWhole) return { outcome: 'not_written' }
  const entry = journal?.note({ path, bytes })
  if (entry === undefined && unlessItFails(() => synced(fd, disk)) === undefined) return { outcome: 'not_written' }
  if (!isLinked(fd, temp, target, disk)) {
    if (entry !== undefined) journal?.retract()
    return { outcome: 'not_written' }
  }
  // Only now: a journal that is taken away from here on has the entry, and whoever took it finds the object under its name.
  if (entry !== undefined && journal?.isOwn()) return { outcome: 'written', entry }
  try {
    if (entry !== undefined) disk.fsync(fd)
    disk.fsync(order.folder)
    return { outcome: 'written' }
  } catch (error) {
    // This must not be repeated: the system reports a lost write once, and a second sync could succeed over it.
    return { outcome: { lost: failedCall(error) } }
  }
}

export const failedCall = (error: unknown): FailedCall => ({ message: messageOf(error), code: errnoOf(error) })

function synced(fd: number, disk: ObjectDisk): true {
  disk.fsync(fd)
  return true
}

function isLinked(fd: number, temp: string, target: string, disk: ObjectDisk): boolean {
  try {
    disk.link(temp, target)
    return true
  } catch {
    // NFS repeats a request whose answer was lost, and the repeat finds our own link: then our file has two names.
    return unlessItFails(() => disk.linksOf(fd) > 1) ?? false
  }
}

function unlessItFails<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
