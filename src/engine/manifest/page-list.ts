import { isServoError, type ServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksummedJson, readChecksummed } from '../files/checksummed-json.ts'
import { type FileRef, fileRef, getChecked } from '../files/file-ref.ts'

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
): { list: PageList<E>; pages: WrittenPage[] } {
  const [known, ...above] = list.levels
  const entries = [...known, entry]
  if (entries.length < PAGE_ENTRIES) return { list: { levels: [entries, ...above] }, pages: [] }

  const pages: WrittenPage[] = []
  const pageOf = (content: readonly (E | PageRef)[], first: number): PageRef => {
    const page = { path: pagePath(entry.publish, pages.length), bytes: checksummedJson('page', content) }
    pages.push(page)
    return { ...fileRef(page.path, page.bytes, content.length), first, last: entry.publish }
  }
  const [oldest = entry] = entries
  let page = pageOf(entries, oldest.publish)
  const levels: (readonly PageRef[])[] = []
  for (let level = 0; ; level++) {
    const full = [...(above[level] ?? []), page]
    if (full.length < PAGE_ENTRIES) return { list: { levels: [[], ...levels, full, ...above.slice(level + 1)] }, pages }
    levels.push([])
    const [first = page] = full
    page = pageOf(full, first.first)
  }
}

interface WrittenPage {
  readonly path: string
  readonly bytes: Uint8Array
}

/** The levels of pages, the highest and with it the oldest first. */
const levelsDown = <E>({ levels: [, ...above] }: PageList<E>): [level: number, pages: readonly PageRef[]][] =>
  [...above.entries()].reverse().map(([i, pages]) => [i + 1, pages])

/** What a page holds: entries, or references to pages of the level below. */
export async function readPage<T>(store: ObjectStore, page: PageRef): Promise<T[]> {
  return readChecksummed<T[]>('page', await getChecked(store, page), page.path)
}

/** Entries from a publish on, oldest first. Pages that lie wholly before it are not read. */
export async function* readEntries<E extends Numbered>(
  store: ObjectStore,
  list: PageList<E>,
  fromPublish = 0,
): AsyncGenerator<E> {
  for (const [level, pages] of levelsDown(list)) {
    for (const page of pages) yield* readUnder<E>(store, page, level, fromPublish)
  }
  for (const entry of list.levels[0]) if (entry.publish >= fromPublish) yield entry
}

async function* readUnder<E extends Numbered>(
  store: ObjectStore,
  page: PageRef,
  level: number,
  fromPublish: number,
): AsyncGenerator<E> {
  if (page.last < fromPublish) return
  if (level > 1) {
    for (const child of await readPage<PageRef>(store, page)) yield* readUnder<E>(store, child, level - 1, fromPublish)
    return
  }
  for (const entry of await readPage<E>(store, page)) if (entry.publish >= fromPublish) yield entry
}

/** All pages and entries that can be read, oldest first. Pages are checked as they are read; `onDamage` is called for those that are damaged. */
export async function* soundEntries<E extends Numbered>(
  store: ObjectStore,
  list: PageList<E>,
  onDamage: (error: ServoError) => void,
): AsyncGenerator<{ readonly page: PageRef } | { readonly entry: E }> {
  async function* under(page: PageRef, level: number): AsyncGenerator<{ readonly page: PageRef } | { readonly entry: E }> {
    yield { page }
    let content: readonly (E | PageRef)[]
    try {
      content = await readPage<E | PageRef>(store, page)
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      onDamage(error)
      return
    }
    for (const each of content) {
      if (level > 1) yield* under(each as PageRef, level - 1)
      else yield { entry: each as E }
    }
  }
  for (const [level, pages] of levelsDown(list)) for (const page of pages) yield* under(page, level)
  for (const entry of list.levels[0]) yield { entry }
}

/** All entries, newest first; a reader that stops early reads no older page. `onPage` is called for each page that is read. */
export async function* readEntriesBackwards<E extends Numbered>(
  store: ObjectStore,
  list: PageList<E>,
  onPage?: (page: PageRef) => void,
): AsyncGenerator<E> {
  yield* list.levels[0].toReversed()
  for (const [level, pages] of levelsDown(list).reverse()) {
    for (const page of pages.toReversed()) yield* readPageBackwards<E>(store, page, level, onPage)
  }
}

async function* readPageBackwards<E extends Numbered>(
  store: ObjectStore,
  page: PageRef,
  level: number,
  onPage: ((page: PageRef) => void) | undefined,
): AsyncGenerator<E> {
  onPage?.(page)
  if (level === 1) {
    yield* (await readPage<E>(store, page)).reverse()
    return
  }
  for (const child of (await readPage<PageRef>(store, page)).reverse()) {
    yield* readPageBackwards<E>(store, child, level - 1, onPage)
  }
}

/** The entry that has a publish: the first one that ends with it or later. Reads one page per level. */
export async function findEntry<E extends Numbered>(
  list: PageList<E>,
  publish: number,
  read: { pages(page: PageRef): Promise<readonly PageRef[]>; entries(page: PageRef): Promise<readonly E[]> },
): Promise<E | undefined> {
  for (const [level, pages] of levelsDown(list)) {
    let page = pages.find(({ last }) => last >= publish)
    if (page === undefined) continue
    for (let depth = level; depth > 1; depth--) {
      page = (await read.pages(page)).find(({ last }) => last >= publish)
      if (page === undefined) return undefined
    }
    return (await read.entries(page)).find((entry) => entry.publish >= publish)
  }
  return list.levels[0].find((entry) => entry.publish >= publish)
}

/** Every page of the list, for checking that all are there. */
export async function* listPages<E extends Numbered>(store: ObjectStore, list: PageList<E>): AsyncGenerator<PageRef> {
  for (const [level, pages] of levelsDown(list)) {
    for (const page of pages) yield* pagesUnder(store, page, level)
  }
}

async function* pagesUnder(store: ObjectStore, page: PageRef, level: number): AsyncGenerator<PageRef> {
  yield page
  if (level === 1) return
  for (const child of await readPage<PageRef>(store, page)) yield* pagesUnder(store, child, level - 1)
}
