import { ServoError } from '../../lib/error.ts'
import type { Registry } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { Archives } from '../ledger/archives.ts'
import { type LedgerPlace, readSegment } from '../ledger/read-segment.ts'
import { openSegment, type Segment } from '../ledger/segment.ts'
import { directFiles, type Manifest, type OrderedPublish, orderedDelta } from '../manifest/manifest.ts'
import { readEntries } from '../manifest/page-list.ts'
import { Paths, type Scope } from '../paths.ts'
import { Compactor } from '../publish/compactor.ts'
import { readOrder } from '../publish/folded-segments.ts'

export interface ReplayOptions {
  /** Where the ledger is. */
  readonly store: ObjectStore
  readonly scope: Scope
  readonly registry: Registry
  /** Holds what the replay itself must read again; small, because files that no manifest names any more are removed. */
  readonly scratch: ObjectStore
  /** Called with every file as it is made. */
  readonly onFile: (path: string, bytes: Uint8Array) => Promise<void> | void
  /** Segments that are lost. Without them, only files that none of their events has changed come out as they were. */
  readonly lost?: ReadonlySet<string>
}

/** The publishes behind a manifest, oldest first: which segments, in which order, published how. */
export async function* recordedPublishes(store: ObjectStore, manifest: Manifest): AsyncGenerator<OrderedPublish> {
  for await (const entry of readEntries(store, manifest.order)) yield* await readOrder(store, entry)
  yield* manifest.l0.map(orderedDelta)
}

/** Folds the ledger again exactly as it was folded, and makes the same files. */
export async function replay(options: ReplayOptions, publishes: AsyncIterable<OrderedPublish>): Promise<Compactor> {
  const { store, scope, registry, scratch, lost = new Set() } = options
  const paths = new Paths(scope)
  const ledger = { store, paths, scope, archives: new Archives({ store, paths }) }
  const compactor = await Compactor.open({
    store: observedStore(options),
    scope,
    registry,
    clock: stoppedClock,
    name: 'replay',
  })
  let named = new Set<string>()
  for await (const recorded of publishes) {
    const segments = recorded.segments.filter((ulid) => !lost.has(ulid))
    for (let start = 0; start < segments.length; start += SEGMENTS_AT_ONCE) {
      const part = segments.slice(start, start + SEGMENTS_AT_ONCE)
      await compactor.fold.apply(await Promise.all(part.map((ulid) => readFolded(ledger, ulid))))
    }
    await compactor.replay(recorded)
    const now = new Set([...directFiles(compactor.manifest)].map((file) => file.path))
    for (const path of named) if (!now.has(path)) await scratch.delete(path)
    await scratch.delete(paths.manifest(compactor.manifest.number - 1))
    named = now
  }
  return compactor
}

const SEGMENTS_AT_ONCE = 64

async function readFolded(ledger: LedgerPlace & { readonly archives: Archives }, ulid: string): Promise<Segment> {
  const path = ledger.paths.segment(ulid)
  const packed = await ledger.archives.readKnown(ulid)
  const segment = packed === undefined ? await readSegment(ledger, ulid) : openSegment(packed, path, ledger.scope)
  if (segment !== undefined) return segment
  throw new ServoError('corrupt', 'segment_missing', `${path} is missing, but it was folded`, {
    hint: 'Restore it from a backup: the ledger is the source of truth and cannot be rebuilt.',
    facts: { path },
  })
}

/** A file of history without a level in its name. */
const PLAIN_HISTORY = /\/history\/[^/]+\/\d+-\d+\.parquet$/

const stoppedClock = { now: () => 0, monotonic: () => 0 }

/** The scratch store, without the history of earlier versions: a replay writes it once and never reads it. Newer history may be merged. */
function observedStore({ scratch, onFile }: ReplayOptions): ObjectStore {
  return {
    async create(path, bytes) {
      if (path.endsWith('.parquet')) await onFile(path, bytes)
      return PLAIN_HISTORY.test(path) ? 'written' : await scratch.create(path, bytes)
    },
    put: (path, bytes) => scratch.put(path, bytes),
    get: (path) => scratch.get(path),
    getRange: (path, start, length) => scratch.getRange(path, start, length),
    size: (path) => scratch.size(path),
    list: (prefix, options) => scratch.list(prefix, options),
    folders: (prefix) => scratch.folders(prefix),
    delete: (path) => scratch.delete(path),
  }
}
