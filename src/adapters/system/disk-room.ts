/** What `statfs` says of a file system. */
export interface Space {
  readonly bsize: number
  readonly blocks: number
  readonly bavail: number
}

const GB = 1_000_000_000
/** A day of a busy project fits in it. */
const LEAST_FREE = GB
/** Many file systems become slow when they are fuller than this. */
const LEAST_SHARE = 0.05

/** How much room there is on the disk of a folder. */
export interface Room {
  readonly free_bytes: number
  readonly total_bytes: number
  readonly state: 'enough' | 'low' | 'none'
  /** The figures, in words. */
  readonly message: string
  /** What to do about it, if there is something to do. */
  readonly hint: string | null
}

/** The rule by which `servo doctor`, a server and its route warn: less than a gigabyte, or less than 5 %. */
export function roomOn(folder: string, { bsize, blocks, bavail }: Space): Room {
  const free = bavail * bsize
  const share = blocks === 0 ? 1 : bavail / blocks
  const state = free === 0 ? 'none' : free >= LEAST_FREE && share >= LEAST_SHARE ? 'enough' : 'low'
  return {
    free_bytes: free,
    total_bytes: blocks * bsize,
    state,
    message: `${sizeOf(free)} free (${Math.floor(share * 100)} %) on the disk of ${folder}`,
    hint: HINTS[state],
  }
}

/** In a unit that leaves a figure to read. */
function sizeOf(bytes: number): string {
  if (bytes >= GB) return `${(bytes / GB).toFixed(1)} GB`
  return bytes >= 1_000_000 ? `${Math.floor(bytes / 1_000_000)} MB` : `${Math.floor(bytes / 1_000)} KB`
}

const MORE = '`servo gc --dry-run` says what `keep` would remove, and docs/how-to/retention.md what else can go.'

const HINTS = {
  enough: null,
  low: `Free some space: once the disk is full, runs stop. ${MORE}`,
  none: `Free some space: Servo can record nothing on a full disk. ${MORE}`,
}
