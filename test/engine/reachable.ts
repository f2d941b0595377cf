import { getChecked } from '../../src/engine/files/file-ref.ts'
import { readHistory } from '../../src/engine/history/entries.ts'
import { directFiles, type Manifest } from '../../src/engine/manifest/manifest.ts'
import { listPages, readEntries } from '../../src/engine/manifest/page-list.ts'
import { readOrder } from '../../src/engine/publish/folded-segments.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'

/** Everything a manifest leads to. Reads each file, so what is missing or damaged throws. */
export async function reachableFrom(store: ObjectStore, manifest: Manifest): Promise<Set<string>> {
  const files = [...directFiles(manifest)]
  for await (const page of listPages<{ publish: number }>(store, manifest.order)) files.push(page)
  for await (const page of listPages<{ publish: number }>(store, manifest.history)) files.push(page)
  for await (const entry of readEntries(store, manifest.order)) {
    files.push(entry)
    await readOrder(store, entry)
  }
  for await (const entry of readHistory(store, manifest)) {
    for (const [table, file] of Object.entries(entry.tables))
      if (entry.publish >= (manifest.dropped[table] ?? 0)) files.push(file)
  }
  await Promise.all(files.map((file) => getChecked(store, file)))
  return new Set(files.map((file) => file.path))
}
