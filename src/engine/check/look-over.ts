import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { readHistory } from '../history/entries.ts'
import { Archives } from '../ledger/archives.ts'
import { isSettled, unsettledAndPacked } from '../ledger/days.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { archivesOf, directFiles, type Manifest } from '../manifest/manifest.ts'
import { readEntries, readEntriesBackwards } from '../manifest/page-list.ts'
import type { Paths } from '../paths.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { Findings } from './findings.ts'

/**
 * What a start can tell without reading everything: whether the tables and archives of the newest manifest are there and as large as they
 * should be, and whether the folded segments of unsettled days are there. `verify` looks closer.
 */
export async function* lookOver(store: ObjectStore, paths: Paths, manifest: Manifest): AsyncGenerator<Damage> {
  const findings = new Findings()
  const seen = new Set<string>()
  const look = async ({ path, bytes }: { readonly path: string; readonly bytes: number }): Promise<Damage | undefined> => {
    if (seen.has(path)) return undefined
    seen.add(path)
    const size = await store.size(path)
    if (size === bytes) return undefined
    return { path, message: size === undefined ? `${path} is missing` : `${path} has ${size} bytes instead of ${bytes}` }
  }
  for (const file of directFiles(manifest)) {
    const damage = await look(file)
    if (damage !== undefined) yield damage
  }
  const entries = readHistory(store, manifest)
  for (;;) {
    const next = await findings.try(paths.state, () => entries.next())
    if (next === undefined || next.done === true) break
    for (const [table, file] of Object.entries(next.value.tables)) {
      const damage = next.value.publish < (manifest.dropped[table] ?? 0) ? undefined : await look(file)
      if (damage !== undefined) yield damage
    }
  }
  const archives = readEntries(store, archivesOf(manifest))
  for (;;) {
    const next = await findings.try(paths.state, () => archives.next())
    if (next === undefined || next.done === true) break
    const damage = await look(next.value)
    if (damage !== undefined) yield damage
  }
  await findings.try(paths.state, () => missedSegments(store, paths, manifest, findings))
  yield* findings.all
}

async function missedSegments(store: ObjectStore, paths: Paths, manifest: Manifest, findings: Findings): Promise<void> {
  const folded = manifest.l0.flatMap(({ segments }) => segments)
  // The recorded order has nothing of unsettled days before this publish. Earlier versions did not record it.
  const from = Math.min(...Object.values(manifest.first_publishes ?? {}))
  for await (const entry of readEntriesBackwards(store, manifest.order)) {
    if (entry.publish < from) break
    for (const { segments } of await readOrder(store, entry)) folded.push(...segments)
  }
  const there = new Set<string>()
  for await (const path of unsettledAndPacked(store, paths, manifest, { archives: new Archives({ store, paths }) }))
    there.add(path)
  for (const ulid of folded) {
    const path = paths.segment(ulid)
    if (!there.has(path) && !isSettled(manifest, utcDay(ulidTime(ulid))))
      findings.report(path, `${path} is missing, but it was folded`)
  }
}
