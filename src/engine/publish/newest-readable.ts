import { isServoError, messageOf } from '../../lib/error.ts'
import type { Damage, LedgerPlace } from '../ledger/read-segment.ts'
import { latest } from '../ledger/sequence.ts'
import { genesis, type LastSegments, type Manifest } from '../manifest/manifest.ts'
import { numbersAbove } from '../manifest/numbers-above.ts'
import { MARK_PLACE, type PublishedMark, readMark } from '../manifest/published-mark.ts'
import { boundaryOf, manifestNumbers, readCopy, readManifest } from '../manifest/stored-manifests.ts'

/** The version of the state that a leader begins with. */
export interface Newest {
  readonly manifest: Manifest
  /** What is wrong with manifests above it, if there are any. */
  readonly found: readonly Damage[]
  /** The last segments that it holds, and the last that were published according to the lease. They differ if manifests were lost. */
  readonly since: LastSegments
  readonly named: LastSegments
}

/**
 * The newest version of the state that can be read. If there were newer ones, it gets numbers above theirs: what they published is folded
 * again from the ledger, into files of other names. `kept` is what the last leader kept with its lease.
 */
export async function newestReadable(place: LedgerPlace, kept: string | undefined): Promise<Newest> {
  const { store, paths, scope } = place
  const found: Damage[] = []
  const mark = readable(() => (kept === undefined ? undefined : readMark(kept)), MARK_PLACE, found)
  const numbers = await manifestNumbers(store, paths)
  let manifest: Manifest | undefined
  for (const number of numbers.toReversed()) {
    manifest = await readableLater(() => readManifest(store, paths, scope, number), paths.manifest(number), found)
    if (manifest !== undefined) break
  }
  const isUnnoticed = manifest === undefined ? !(await hasFolders(place)) : found.length === 0
  const isSound = isUnnoticed && (mark?.manifest ?? 0) <= (manifest?.number ?? 0)
  const newest = isSound
    ? (manifest ?? genesis(scope))
    : await afterLoss(place, { manifest, mark, found, highest: numbers.at(-1) ?? 0 })
  const [since, named] = [newest.writers ?? {}, mark?.writers ?? {}]
  // Named for ever, so that what is missing stays noticed.
  return { manifest: { ...newest, writers: latest([since, named]) }, found, since, named }
}

/** True if something was published here once. */
async function hasFolders({ store, paths }: LedgerPlace): Promise<boolean> {
  for await (const _ of store.folders(paths.state)) return true
  return false
}

interface Remains {
  readonly manifest: Manifest | undefined
  readonly mark: PublishedMark | undefined
  readonly found: Damage[]
  /** The highest number that a manifest in the store has. */
  readonly highest: number
}

async function afterLoss(place: LedgerPlace, { manifest, mark, found, highest }: Remains): Promise<Manifest> {
  const { store, paths, scope } = place
  const copy = await readableLater(() => readCopy(store, paths, scope), paths.manifestCopy, found)
  const newest = Math.max(highest, mark?.manifest ?? 0, copy?.number ?? 0, await boundaryOf(store, paths))
  if (newest > highest || newest === 0) {
    const path = newest === 0 ? paths.manifests : paths.manifest(newest)
    found.push({ path, message: newest === 0 ? `${path} has no manifest any more` : `${path} is missing` })
  }
  if (copy !== undefined && copy.number === newest) return copy
  const from = copy !== undefined && copy.number > (manifest?.number ?? 0) ? copy : (manifest ?? genesis(scope))
  const instead = from.number === 0 ? 'from the beginning' : `after manifest ${from.number}`
  found.push({ path: paths.manifests, message: `what happened ${instead} is folded again from the ledger` })
  return { ...from, ...(await numbersAbove(place, mark)) }
}

function readable<T>(read: () => T, path: string, found: Damage[]): T | undefined {
  try {
    return read()
  } catch (error) {
    note(error, path, found)
    return undefined
  }
}

async function readableLater<T>(read: () => Promise<T>, path: string, found: Damage[]): Promise<T | undefined> {
  try {
    return await read()
  } catch (error) {
    note(error, path, found)
    return undefined
  }
}

function note(error: unknown, path: string, found: Damage[]): void {
  if (!isServoError(error, 'corrupt')) throw error
  found.push({ path, message: messageOf(error) })
}
