import type { ObjectStore } from '../../ports/object-store.ts'
import { checksummedJson, readChecksummed } from '../ledger/checksummed-json.ts'
import { type FileRef, fileRef, getChecked } from '../parquet/checked.ts'

/**
 * A list that only grows, of which a manifest holds a bounded part however long it gets: the newest entries as they
 * are, older ones as references to immutable pages of entries, still older ones as references to pages of references.
 */
export interface PageList<E> {
  /** `levels[0]` are entries, `levels[n]` are pages each holding a full `levels[n - 1]`; oldest first in each. */
  readonly levels: readonly [readonly E[], ...(readonly PageRef[])[]]
}

export interface PageRef extends FileRef {
  /** The publishes its entries belong to, so that a reader can pass over the page. */
  readonly first: number
  readonly last: number
}

interface Numbered {
  readonly publish: number
}

/** Entries per page. A manifest is written with every publish, so it holds few: a million entries are five levels of these. */
export const PAGE_ENTRIES = 16

export const emptyList = <E>(): PageList<E> => ({ levels: [[]] })

/** The list with one more entry, and the pages that have to be written for it. */
export function appendEntry<E extends Numbered>(
  list: PageList<E>,
  entry: E,
  pagePath: (publish: number, level: number) => string,
): { list: PageList<E>; pages: { path: string; bytes: Uint8Array }[] } {
  const pages: { path: string; bytes: Uint8Array }[] = []
  const levels = list.levels.map((level) => [...level]) as [E[], ...PageRef[][]]
  levels[0].push(entry)
  for (let level = 0; (levels[level]?.length ?? 0) >= PAGE_ENTRIES; level++) {
    const full = levels[level] as (E | PageRef)[]
    const bytes = checksummedJson('page', full)
    const path = pagePath(entry.publish, level)
    pages.push({ path, bytes })
    levels[level] = []
    levels[level + 1] ??= []
    ;(levels[level + 1] as PageRef[]).push({ ...fileRef(path, bytes, full.length), first: firstOf(full), last: entry.publish })
  }
  return { list: { levels }, pages }
}

const firstOf = (entries: readonly (Numbered | PageRef)[]): number => {
  const first = entries[0] as Numbered | PageRef
  return 'first' in first ? first.first : first.publish
}

/** Entries from a publish on, oldest first. Pages that lie wholly before it are not read. */
export async function* readEntries<E extends Numbered>(
  store: ObjectStore,
  list: PageList<E>,
  fromPublish = 0,
): AsyncGenerator<E> {
  for (let level = list.levels.length - 1; level >= 1; level--) {
    for (const page of list.levels[level] as readonly PageRef[]) yield* readPage<E>(store, page, level, fromPublish)
  }
  for (const entry of list.levels[0]) if (entry.publish >= fromPublish) yield entry
}

async function* readPage<E extends Numbered>(
  store: ObjectStore,
  page: PageRef,
  level: number,
  fromPublish: number,
): AsyncGenerator<E> {
  if (page.last < fromPublish) return
  const content = readChecksummed<(E | PageRef)[]>('page', await getChecked(store, page), page.path)
  for (const item of content) {
    if (level > 1) yield* readPage<E>(store, item as PageRef, level - 1, fromPublish)
    else if ((item as E).publish >= fromPublish) yield item as E
  }
}

/** All entries, newest first; a reader that stops early reads no older page. `onPage` is told of each page that is read. */
export async function* readEntriesBackwards<E extends Numbered>(
  store: ObjectStore,
  list: PageList<E>,
  onPage?: (page: PageRef) => void,
): AsyncGenerator<E> {
  yield* list.levels[0].toReversed()
  for (let level = 1; level < list.levels.length; level++) {
    for (const page of (list.levels[level] as readonly PageRef[]).toReversed())
      yield* readPageBackwards<E>(store, page, level, onPage)
  }
}

async function* readPageBackwards<E extends Numbered>(
  store: ObjectStore,
  page: PageRef,
  level: number,
  onPage: ((page: PageRef) => void) | undefined,
): AsyncGenerator<E> {
  onPage?.(page)
  const content = readChecksummed<(E | PageRef)[]>('page', await getChecked(store, page), page.path)
  for (const item of content.toReversed()) {
    if (level > 1) yield* readPageBackwards<E>(store, item as PageRef, level - 1, onPage)
    else yield item as E
  }
}

/** Every page of the list, for checking that all are there. */
export async function* listPages<E extends Numbered>(store: ObjectStore, list: PageList<E>): AsyncGenerator<PageRef> {
  for (let level = list.levels.length - 1; level >= 1; level--) {
    for (const page of list.levels[level] as readonly PageRef[]) yield* pagesUnder(store, page, level)
  }
}

async function* pagesUnder(store: ObjectStore, page: PageRef, level: number): AsyncGenerator<PageRef> {
  yield page
  if (level === 1) return
  const content = readChecksummed<PageRef[]>('page', await getChecked(store, page), page.path)
  for (const child of content) yield* pagesUnder(store, child, level - 1)
}
