import { checksummedJson, readChecksummed } from '../files/checksummed-json.ts'
import type { LastSegments, Manifest } from './manifest.ts'

/** What a leader keeps with its lease after each publish, so that a manifest or segment that goes missing later is noticed. */
export interface PublishedMark {
  readonly manifest: number
  readonly epoch: number
  readonly publish: number
  readonly writers: LastSegments
}

/** Where the mark is, in findings about it. */
export const MARK_PLACE = 'lease'

export function markOf({ number, epoch, publish, writers = {} }: Manifest): string {
  const mark: PublishedMark = { manifest: number, epoch, publish, writers }
  return Buffer.from(checksummedJson('published', mark)).toString()
}

/** Throws `corrupt` unless it is exactly what was kept. */
export const readMark = (kept: string): PublishedMark =>
  readChecksummed<PublishedMark>('published', Buffer.from(kept), MARK_PLACE)
