import { type Finding, fine, problem, warning } from './finding.ts'

/** Compares Node with what the package asks for, such as `>=22.18`. */
export function nodeFinding(
  version: string,
  { version: own, engines }: { version: string; engines: { node: string } },
): Finding {
  const said = `Node ${version.replace(/^v/, '')}; Servo ${own} needs ${engines.node}`
  const isEnough = compareVersions(numbersIn(version), numbersIn(engines.node)) >= 0
  return isEnough ? fine('node', said) : problem('node', said, 'Install Node 24 (https://nodejs.org, or: nvm install 24).')
}

const numbersIn = (text: string): number[] => (/\d+(?:\.\d+)*/.exec(text)?.[0] ?? '').split('.').map(Number)

function compareVersions(one: readonly number[], other: readonly number[]): number {
  for (let i = 0; i < other.length; i++) {
    const difference = (one[i] ?? 0) - (other[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

const GB = 1_000_000_000
/** A day of a busy project fits in it. */
const LEAST_FREE = GB
/** Many file systems become slow when they are fuller than this. */
const LEAST_SHARE = 0.05

/** What `statfs` says of a file system. */
export interface Space {
  readonly bsize: number
  readonly blocks: number
  readonly bavail: number
}

export function diskFinding(folder: string, { bsize, blocks, bavail }: Space): Finding {
  const free = bavail * bsize
  const share = blocks === 0 ? 1 : bavail / blocks
  const said = `${(free / GB).toFixed(1)} GB free (${Math.floor(share * 100)} %) on the disk of ${folder}`
  if (free === 0) return problem('disk', said, 'Free some space: Servo can record nothing on a full disk.')
  if (free >= LEAST_FREE && share >= LEAST_SHARE) return fine('disk', said)
  return warning('disk', said, 'Free some space: once the disk is full, runs stop.')
}
