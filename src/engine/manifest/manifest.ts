import type { Envelope } from '../../model/envelope.ts'
import type { FileRef, SortedFileRef } from '../files/file-ref.ts'
import type { Scope } from '../paths.ts'
import { emptyList, type PageList } from './page-list.ts'

/**
 * Since format 2 history is merged, and a part of it is in the manifest; since format 3 segments may be in archives; since format 4 events
 * may be ordered otherwise than by their times. A version that does not know of that must not read on without it.
 */
export const MANIFEST_FORMAT = 4

/** One version of the state: which files, made from which segments. Immutable; creating number n + 1 is the compare-and-swap. */
export interface Manifest {
  readonly format: 1 | 2 | 3 | typeof MANIFEST_FORMAT
  readonly tenant_id: string
  readonly workspace_id: string
  /** Position in the chain of manifests; there is one per number. */
  readonly number: number
  /** Fences compactors: every takeover adds one, and no manifest of a lower epoch follows one of a higher. */
  readonly epoch: number
  readonly compactor: string
  readonly published_at: string
  /** How many times rows were published; files and list entries carry this number. */
  readonly publish: number
  readonly watermarks: Watermarks
  /** Rows of unfinished work as of one publish, by table. */
  readonly base: {
    readonly publish: number
    readonly tables: Readonly<Record<string, FileRef>>
    /** The changes from the publish before the base, for readers that hold that publish. */
    readonly delta: Readonly<Record<string, DeltaFiles>>
  }
  /** What changed since the base, oldest first. */
  readonly l0: readonly Delta[]
  readonly l0_count: number
  readonly l0_rows: number
  readonly l0_limits: L0Limits
  /** Sorted files of the cold tables, oldest first. */
  readonly sorted_files: Readonly<Record<string, readonly SortedFileRef[]>>
  /** Rows of finished work: closed entries, each as large as entries get, or all of a day. */
  readonly history: PageList<HistoryEntry>
  /** Entries of the newest day, oldest first, which are merged with those to come. Absent in manifests of format 1. */
  readonly open_history?: readonly HistoryEntry[]
  /** By table that has lists: the newest row in closed history. Absent in manifests of format 1. */
  readonly history_newest?: Readonly<Record<string, number>>
  /** Segments in the order in which they were consumed, one entry per base. */
  readonly order: PageList<OrderEntry>
  /** The last segments of the writers that wrote last. Manifests of earlier versions have none. */
  readonly writers?: LastSegments
  /** Days of the ledger in which no process writes any more. What is in them may not all be folded yet. */
  readonly closed_days?: readonly DayRange[]
  /** Days that are closed and completely folded: no start lists them. Manifests of earlier versions have none. */
  readonly settled_days?: readonly DayRange[]
  /** Archives of the ledger, in the order in which they were packed. Absent until the first one. */
  readonly archives?: PageList<ArchiveEntry>
  /** Settled days of which every segment is in an archive. */
  readonly packed_days?: readonly DayRange[]
  /** For every other day with folded segments, the first publish that folded one: the recorded order has nothing of the day before it. */
  readonly first_publishes?: Readonly<Record<string, number>>
  /** Per table: history before this publish was dropped by retention. */
  readonly dropped: Readonly<Record<string, number>>
}

/** Days of the ledger, `2025-01-15`, from the first to the last, both included. */
export type DayRange = readonly [first: string, last: string]

/** By writer, its last segment that was folded. */
export type LastSegments = Readonly<Record<string, LastSegment>>

export interface LastSegment {
  /** The place of the segment among those of its writer, counted from 1. */
  readonly number: number
  readonly segment: string
}

export interface Watermarks {
  /** The largest segment ULID folded. */
  readonly events_processed_through: string | null
  readonly last_processed_file: string | null
  readonly last_processed_at: string | null
  /** Segments and events folded since the beginning. */
  readonly segments: number
  readonly events: number
  /** The event that stands last in order, of all that were folded. Absent in manifests of earlier versions. */
  readonly newest_event?: NewestEvent
}

/** The event on record that stands last in order: by its id. */
export type NewestEvent = Readonly<Pick<Envelope, 'event_id' | 'behind_ms'>>

/** What is put on record of it. */
export const newestOf = ({ event_id, behind_ms }: NewestEvent): NewestEvent =>
  behind_ms === undefined ? { event_id } : { event_id, behind_ms }

export interface Delta {
  readonly publish: number
  readonly epoch: number
  readonly published_at: string
  readonly segments: readonly string[]
  readonly rows: number
  readonly tables: Readonly<Record<string, DeltaFiles>>
}

export interface DeltaFiles {
  readonly rows?: FileRef
  /** Keys of rows that are gone. */
  readonly removed?: FileRef
}

export interface L0Limits {
  readonly max_count: number
  readonly max_rows: number
  readonly max_age_ms: number
  readonly max_segments: number
}

/** What some publishes, one after the other, sealed: a file for each table that had rows. */
export interface HistoryEntry {
  /** The last of these publishes. */
  readonly publish: number
  /** The first of them. Absent in entries of format 1, which have one publish each. */
  readonly first?: number
  readonly sealed_at: string
  /** How many times its rows were merged. Absent in entries of format 1. */
  readonly level?: number
  readonly tables: Readonly<Record<string, HistoryFile>>
  /** By table that has lists: when its oldest and its newest row stand there. */
  readonly spans?: Readonly<Record<string, readonly [oldest: number, newest: number]>>
  /** By table that has lists: the newest row in all entries before this one. A list that has passed it need not go on. */
  readonly newest_before?: Readonly<Record<string, number>>
}

/** A file of history: a sorted file, or in an entry of format 1 a plain one. */
export type HistoryFile = FileRef | SortedFileRef

export const isSortedFile = (file: HistoryFile): file is SortedFileRef => 'footer_crc32' in file

/** A file that lists the segments of some publishes. */
export interface OrderEntry extends FileRef {
  readonly publish: number
}

/** An archive of the ledger; its rows are segments. */
export interface ArchiveEntry extends FileRef {
  /** The number of the manifest that named it first: pages of the list go by it. */
  readonly publish: number
}

/** One publish as a rebuild repeats it. */
export interface OrderedPublish {
  readonly publish: number
  readonly epoch: number
  readonly kind: 'delta' | 'base'
  readonly published_at: string
  readonly segments: readonly string[]
  /** Decides which rows a base leaves out, so a rebuild must know it. */
  readonly retention?: Readonly<Record<string, number>>
  /** How a base kept history. Absent in what earlier versions recorded: each base added an entry, and none were merged. */
  readonly history?: HistoryRule
}

/** History is merged in levels. */
export interface HistoryRule {
  /** Open entries are closed when they have this many rows. */
  readonly full_rows: number
  /** Open entries of a level become one of the next when there are this many. */
  readonly per_level: number
}

/** A delta as the recorded order has it. */
export function orderedDelta({ publish, epoch, published_at, segments }: Delta): OrderedPublish {
  return { publish, epoch, kind: 'delta', published_at, segments }
}

export const defaultL0Limits: L0Limits = { max_count: 64, max_rows: 50_000, max_age_ms: 600_000, max_segments: 4_000 }

export function genesis(scope: Scope): Manifest {
  return {
    format: MANIFEST_FORMAT,
    ...scope,
    number: 0,
    epoch: 0,
    compactor: '',
    published_at: '1970-01-01T00:00:00.000Z',
    publish: 0,
    watermarks: {
      events_processed_through: null,
      last_processed_file: null,
      last_processed_at: null,
      segments: 0,
      events: 0,
    },
    base: { publish: 0, tables: {}, delta: {} },
    l0: [],
    l0_count: 0,
    l0_rows: 0,
    l0_limits: defaultL0Limits,
    sorted_files: {},
    history: emptyList(),
    order: emptyList(),
    closed_days: [],
    settled_days: [],
    first_publishes: {},
    dropped: {},
  }
}

/**
 * The event that stands last in order. An earlier version did not record it; no event of its had an id beyond the names of its segments,
 * which one process made in the same order.
 */
export function newestEventIn({ watermarks }: Manifest): NewestEvent | undefined {
  const { newest_event, events_processed_through: event_id } = watermarks
  return newest_event ?? (event_id === null ? undefined : { event_id })
}

/** The archives that a manifest leads to. */
export const archivesOf = ({ archives = emptyList() }: Manifest): PageList<ArchiveEntry> => archives

/** Every file that the manifest itself names. Closed history, order and their pages are reached through the lists. */
export function* directFiles(manifest: Manifest): Generator<FileRef> {
  yield* Object.values(manifest.base.tables)
  for (const tables of [manifest.base.delta, ...manifest.l0.map((delta) => delta.tables)]) {
    for (const { rows, removed } of Object.values(tables)) {
      if (rows !== undefined) yield rows
      if (removed !== undefined) yield removed
    }
  }
  for (const files of Object.values(manifest.sorted_files)) yield* files
  for (const { tables } of manifest.open_history ?? []) yield* Object.values(tables)
}
