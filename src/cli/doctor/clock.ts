import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { newestManifest } from '../../engine/manifest/stored-manifests.ts'
import { Paths, segmentUlid } from '../../engine/paths.ts'
import { DAY_MS, HOUR_MS } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { LocalComponents } from '../../server/components.ts'
import { type Finding, fine, warning } from './finding.ts'

/** A file that says when it was made. */
export interface Dated {
  readonly what: string
  /** By the clock of the process that made it. */
  readonly madeMs: number
  /** By the clock of the file system. */
  readonly writtenMs: number
}

/** Longer than it takes to write a file, and more than file systems round. */
const TOLERANCE_MS = 5_000

/** Compares the newest files with this clock, and the clock of the file system with that of the process that wrote them. */
export function clockFindings(files: readonly Dated[], nowMs: number): Finding[] {
  const wrong = files.flatMap(({ what, madeMs, writtenMs }) => {
    if (madeMs - nowMs > TOLERANCE_MS)
      return [
        warning(
          'clock',
          `${what} is dated ${isoTime(madeMs)}, ${lengthText(madeMs - nowMs)} ahead of this clock: either a clock was fast, or this one is slow`,
          'Synchronize the clocks of all machines that run Servo (NTP). Until then, schedules may tick late.',
        ),
      ]
    // A copy of a file is younger than what it says, which is no mistake of a clock unless it lies in the future.
    const differenceMs = writtenMs - nowMs > TOLERANCE_MS ? writtenMs - nowMs : Math.min(0, writtenMs - madeMs)
    if (Math.abs(differenceMs) <= TOLERANCE_MS) return []
    const direction = differenceMs > 0 ? 'ahead of' : 'behind'
    return [
      warning(
        'clock',
        `the clock of the file system was ${lengthText(Math.abs(differenceMs))} ${direction} the clock of this machine when ${what} was written`,
        'Synchronize the clocks of this machine and its file server (NTP).',
      ),
    ]
  })
  if (wrong.length > 0) return wrong
  return [
    fine(
      'clock',
      files.length === 0
        ? `${isoTime(nowMs)}; nothing to compare it with yet`
        : `${isoTime(nowMs)}; no record is from the future`,
    ),
  ]
}

const isoTime = (ms: number): string => new Date(ms).toISOString()

function lengthText(ms: number): string {
  if (ms >= 2 * DAY_MS) return `${Math.floor(ms / DAY_MS)} days`
  if (ms >= 2 * HOUR_MS) return `${Math.floor(ms / HOUR_MS)} hours`
  return `${Math.floor(ms / 1_000)} s`
}

/** The newest manifest and the newest segment, as far as there are any. */
export async function newestFiles({ store, scope, servoDir }: LocalComponents): Promise<Dated[]> {
  const paths = new Paths(scope)
  const writtenMs = async (path: string): Promise<number> => (await stat(join(servoDir, path))).mtimeMs
  const found: Dated[] = []
  // A manifest that cannot be read is a finding about the store.
  const manifest = await newestManifest(store, paths, scope).catch(() => undefined)
  if (manifest !== undefined && manifest.number > 0)
    found.push({
      what: 'the newest manifest',
      madeMs: Date.parse(manifest.published_at),
      writtenMs: await writtenMs(paths.manifest(manifest.number)),
    })
  const segment = await newestSegment(store, paths)
  if (segment !== undefined)
    found.push({
      what: 'the newest segment',
      madeMs: ulidTime(segment),
      writtenMs: await writtenMs(paths.segment(segment)),
    })
  return found
}

async function newestSegment(store: LocalComponents['store'], paths: Paths): Promise<string | undefined> {
  const days = await Array.fromAsync(store.folders(paths.ledger))
  for (const day of days.reverse()) {
    let newest: string | undefined
    for await (const { path } of store.list(paths.day(day))) newest = segmentUlid(path) ?? newest
    if (newest !== undefined) return newest
  }
  return undefined
}
