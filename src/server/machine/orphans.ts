import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { sha256 } from '../../lib/hash.ts'
import { processStat } from '../../lib/process/process-stat.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { endMarked, MARKER } from '../../worker/marked.ts'
import { scratchPrefix } from '../../worker/scratch-folder.ts'

/** A process that is forked between two looks is found by the next. Only a process that cannot be killed is found this often. */
const MAX_LOOKS = 50
const PAUSE_MS = 20

/**
 * Ends processes that attempts of earlier servers of this folder left running, removes their temporary folders, and returns the marker for the workers of this
 * server. The leader calls it before anything is dispatched, when earlier servers are gone or deposed.
 */
export async function endOrphans(servoDir: string, clock: Pick<AlarmClock, 'sleep'>): Promise<string> {
  const folder = await folderId(servoDir)
  const marker = `${folder}:${randomBytes(8).toString('hex')}`
  // An attempt may have started this server, for example from a shell that it left behind: a server does not end itself.
  const except = withAncestors(process.pid)
  for (let look = 1; look <= MAX_LOOKS; look++) {
    const ended = endMarked(MARKER, { prefix: `${folder}:`, unless: `${marker}:`, except })
    if (ended.length === 0) break
    await clock.sleep(PAUSE_MS)
  }
  await removeScratch(`${scratchPrefix(folder)}-`, `${scratchPrefix(marker)}-`)
  return marker
}

/** Removes temporary folders of attempts that were killed. They may hold inputs and rows. */
async function removeScratch(prefix: string, unless: string): Promise<void> {
  const names = await readdir(tmpdir()).catch(() => [])
  const left = names.filter((name) => name.startsWith(prefix) && !name.startsWith(unless))
  // What cannot be removed belongs to another user, and harms nobody.
  for (const name of left) await rm(path.join(tmpdir(), name), { recursive: true, force: true }).catch(() => undefined)
}

/**
 * Identifies the folder, not its path or content: a copy of a project is another folder, a project that was moved is the same. Device
 * and inode are what a claim on the lease goes by, too. A folder that was deleted may leave its number to a new one; a server of the
 * new folder then also ends what attempts of the deleted project left behind, which cannot record its results anywhere any more.
 */
async function folderId(servoDir: string): Promise<string> {
  const { dev, ino } = await stat(servoDir, { bigint: true })
  return sha256(`${dev}:${ino}`).slice(0, 16)
}

/** This process, its parent, and so on up. */
function withAncestors(pid: number): number[] {
  const all = [pid]
  for (let parent = parentOf(pid); parent > 1; parent = parentOf(parent)) all.push(parent)
  return all
}

function parentOf(pid: number): number {
  try {
    return processStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.parent ?? 0
  } catch {
    return 0
  }
}
