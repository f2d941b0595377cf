import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { sha256 } from '../../lib/hash.ts'
import { processStat } from '../../lib/process-stat.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { endMarked, MARKER } from '../../worker/marked.ts'

/** Forks that happen between two looks are found by the next; only what cannot be killed at all is found so often. */
const MOST_LOOKS = 50
const PAUSE_MS = 20

/**
 * Ends what attempts of earlier starts of this folder left running, and returns the marker for the workers of this one.
 * Earlier servers must be gone by then, or deposed: the leader calls this before anything is dispatched.
 */
export async function endOrphans(servoDir: string, clock: Pick<AlarmClock, 'sleep'>): Promise<string> {
  const folder = await folderId(servoDir)
  const marker = `${folder}:${randomBytes(8).toString('hex')}`
  // A server that was itself started by a task, from a shell that it left behind, say, does not end itself.
  const except = withAncestors(process.pid)
  for (let look = 1; look <= MOST_LOOKS; look++) {
    const ended = endMarked(MARKER, { prefix: `${folder}:`, unless: `${marker}:`, except })
    if (ended.length === 0) break
    await clock.sleep(PAUSE_MS)
  }
  return marker
}

/**
 * Names the folder, not its path or content: a copy of a project is another folder, one that was moved is the same. The
 * moment of its creation tells it from one that was given the number of a deleted one.
 */
async function folderId(servoDir: string): Promise<string> {
  const { dev, ino, birthtimeNs } = await stat(servoDir, { bigint: true })
  return sha256(`${dev}:${ino}:${birthtimeNs}`).slice(0, 16)
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
