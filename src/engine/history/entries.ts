import type { ObjectStore } from '../../ports/object-store.ts'
import type { HistoryEntry, Manifest } from '../manifest/manifest.ts'
import { readEntries } from '../manifest/page-list.ts'

/** The entries of history from a publish on, oldest first, closed ones and open ones. Pages that lie wholly before it are not read. */
export async function* readHistory(store: ObjectStore, manifest: Manifest, fromPublish = 0): AsyncGenerator<HistoryEntry> {
  yield* readEntries(store, manifest.history, fromPublish)
  for (const entry of manifest.open_history ?? []) if (entry.publish >= fromPublish) yield entry
}
