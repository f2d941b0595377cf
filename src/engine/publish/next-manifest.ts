import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import { checksummedJson } from '../files/checksummed-json.ts'
import { includesDay, withoutDays } from '../ledger/days.ts'
import { type Sequenced, withPublished } from '../ledger/sequence.ts'
import {
  type DayRange,
  MANIFEST_FORMAT,
  type Manifest,
  newestOf,
  type OrderEntry,
  type OrderedPublish,
  orderedDelta,
} from '../manifest/manifest.ts'
import { appendEntry, type PageList } from '../manifest/page-list.ts'
import { Paths } from '../paths.ts'
import type { DraftInput } from './draft-input.ts'
import type { FileSet } from './file-set.ts'

/** The next manifest with everything but the files. */
export function nextManifest(
  { manifest, epoch, compactor, publishedAt, events, newestEvent, scope, days }: DraftInput,
  published: readonly Sequenced[],
): Manifest {
  const { watermarks, writers = {} } = manifest
  const segments = published.map(({ ulid }) => ulid)
  const newest = segments.reduce(
    (largest, ulid) => (ulid > largest ? ulid : largest),
    watermarks.events_processed_through ?? '',
  )
  const last = segments.at(-1)
  return {
    ...manifest,
    format: MANIFEST_FORMAT,
    number: manifest.number + 1,
    epoch,
    compactor,
    published_at: publishedAt,
    publish: manifest.publish + 1,
    ...days,
    writers: withPublished(writers, published),
    ...(manifest.packed_days && { packed_days: withoutDays(manifest.packed_days, segments.map(dayOf)) }),
    ...(manifest.first_publishes && { first_publishes: firstPublishes(manifest, days.settled_days, segments) }),
    watermarks: {
      events_processed_through: newest === '' ? null : newest,
      last_processed_file: last === undefined ? watermarks.last_processed_file : new Paths(scope).segment(last),
      last_processed_at: publishedAt,
      segments: watermarks.segments + segments.length,
      events: watermarks.events + events,
      ...(newestEvent !== undefined && { newest_event: newestOf(newestEvent) }),
    },
  }
}

const dayOf = (ulid: string): string => utcDay(ulidTime(ulid))

function firstPublishes(
  { first_publishes, publish }: Manifest,
  settled: readonly DayRange[],
  segments: readonly string[],
): Record<string, number> {
  const first = Object.fromEntries(Object.entries(first_publishes ?? {}).filter(([day]) => !includesDay(settled, day)))
  for (const ulid of segments) {
    const day = dayOf(ulid)
    if (!includesDay(settled, day)) first[day] ??= publish + 1
  }
  return first
}

/** Records the order of this base and of the deltas since the base before it. Returns the list; its file and pages go into `files`. */
export function recordOrder(input: DraftInput, segments: readonly string[], files: FileSet): PageList<OrderEntry> {
  const { manifest, epoch, publishedAt } = input
  const paths = new Paths(input.scope)
  const publish = manifest.publish + 1
  const base: OrderedPublish = {
    publish,
    epoch,
    kind: 'base',
    published_at: publishedAt,
    segments,
    retention: input.retention,
    ...(input.history !== undefined && { history: input.history }),
  }
  const publishes = [...manifest.l0.map(orderedDelta), base]
  const count = publishes.reduce((sum, entry) => sum + entry.segments.length, 0)
  const entry: OrderEntry = {
    ...files.add(paths.order(publish, epoch), checksummedJson('order', publishes), count),
    publish,
  }
  const { list, pages } = appendEntry(manifest.order, entry, (at, level) => paths.page('order', at, epoch, level))
  for (const page of pages) files.list.push(page)
  return list
}
