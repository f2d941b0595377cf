import type { ObjectStore } from '../../ports/object-store.ts'
import type { FileRef } from '../files/file-ref.ts'
import { genesis, type Manifest } from '../manifest/manifest.ts'
import { MARK_PLACE, type PublishedMark, readMark } from '../manifest/published-mark.ts'
import { boundaryOf, decodeManifest, manifestNumbers, readCopy } from '../manifest/stored-manifests.ts'
import type { Paths, Scope } from '../paths.ts'
import type { Findings } from './findings.ts'
import { salvage } from './salvage.ts'

export interface ManifestOptions {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly paths: Paths
  /** Reads what the last leader kept with its lease, before anything else: what is published meanwhile is then not missed. */
  readonly kept: (() => Promise<string | undefined>) | undefined
}

/** The manifests that there are, as far as they can be read. */
export interface CheckedManifests {
  /** Ascending. The copy counts if the manifest that it is of is damaged or gone. */
  readonly manifests: readonly Manifest[]
  readonly newest: Manifest
  readonly mark: PublishedMark | undefined
  /** What a damaged manifest above the newest says of files, as far as it can be made out. */
  readonly salvaged: readonly { readonly file: FileRef; readonly manifest: string }[]
}

/** Reads every manifest, and reports those that are damaged, and the newest if it is missing. Nobody misses an older one. */
export async function checkManifests(options: ManifestOptions, findings: Findings): Promise<CheckedManifests> {
  const { store, scope, paths, kept } = options
  const mark = await findings.try(MARK_PLACE, async () => {
    const text = await kept?.()
    return text === undefined ? undefined : readMark(text)
  })
  // Before the manifests: a copy that is newer than they are is then the copy of one that is gone.
  const copy = await findings.try(paths.manifestCopy, () => readCopy(store, paths, scope))
  const boundary = await boundaryOf(store, paths)
  const manifests: Manifest[] = []
  const damaged: { path: string; number: number; bytes: Uint8Array }[] = []
  let highest = 0
  for (const number of await manifestNumbers(store, paths)) {
    if (number < boundary) continue
    const path = paths.manifest(number)
    const bytes = await store.get(path)
    // Garbage collection may have been faster.
    if (bytes === undefined) continue
    highest = number
    const manifest = await findings.try(path, () => decodeManifest(bytes, path, scope))
    if (manifest === undefined) damaged.push({ path, number, bytes })
    else manifests.push(manifest)
  }
  await reportLost(options, findings, { highest, named: Math.max(boundary, mark?.manifest ?? 0, copy?.number ?? 0) })
  if (copy !== undefined && copy.number > (manifests.at(-1)?.number ?? 0)) manifests.push(copy)
  reportSetBack(manifests, paths, findings)
  const newest = manifests.at(-1) ?? genesis(scope)
  // Nobody needs the files that only an older manifest lists.
  const salvaged = damaged.flatMap(({ path, number, bytes }) =>
    number <= newest.number ? [] : salvage(bytes).map((file) => ({ file, manifest: path })),
  )
  return { manifests, newest, mark, salvaged }
}

async function reportLost(
  { store, paths }: ManifestOptions,
  findings: Findings,
  { highest, named }: { highest: number; named: number },
): Promise<void> {
  if (named > highest) {
    const path = paths.manifest(named)
    findings.report(path, `${path} is missing; servo rebuild brings it back, or makes the tables again from the ledger`)
    return
  }
  if (highest > 0) return
  for await (const _ of store.folders(paths.state)) {
    findings.report(paths.manifests, `${paths.manifests} has no manifest, though tables were published; run servo rebuild`)
    return
  }
}

function reportSetBack(manifests: readonly Manifest[], paths: Paths, findings: Findings): void {
  manifests.forEach((after, i) => {
    const before = manifests[i - 1]
    if (before === undefined) return
    const wentBack =
      after.epoch < before.epoch || after.publish < before.publish || after.watermarks.segments < before.watermarks.segments
    const path = paths.manifest(after.number)
    if (wentBack)
      findings.report(path, `${path}: epoch, publish or position went back from manifest ${before.number} to ${after.number}`)
  })
}
