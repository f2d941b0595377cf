import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import { dataVersions } from '../../../domain/partitions/data-versions.table.ts'
import { partitionStatus, type StatusRow } from '../../../domain/partitions/partition-status.table.ts'
import { expiredBefore, type KeepRule } from '../../../domain/retention/keep-rule.ts'
import { type ValueVersionRow, valueVersions } from '../../../domain/retention/value-versions.table.ts'
import { ulidTime } from '../../../lib/ulid.ts'
import { joinedStatus } from '../joined-status.ts'
import type { KnownRows } from '../known-rows.ts'
import { valuesInUse } from './values-in-use.ts'

export interface AssetToLookAt {
  readonly key: string
  readonly rule: KeepRule
  /** Everything up to this event was looked at before. */
  readonly after: string
}

export interface LookOptions {
  readonly now: number
  /** What was pushed out more recently than this stays, for readers that have just begun. */
  readonly graceMs: number
}

/** What one step found. */
export interface Expired {
  readonly values: readonly ValueVersionRow[]
  /** Everything up to this event is looked at now. */
  readonly passed: string
  /** `more` if the next step may begin at once, a time if it has to wait for that; otherwise there is nothing left to look at. */
  readonly next: 'more' | 'nothing' | number
}

/** Materializations that one step looks at: a fraction of a second. */
const STEP = 200
/** In use for as long as an attempt runs, and nothing says when that ends. */
const WAIT_MS = 60_000
/** Materializations that stored nothing lie in between; it is seldom more than these. */
const BACK = 4

/**
 * The next values of an asset that its rule does not keep. Materializations are looked at in the order in which they were made: each pushes
 * one value of its partition out of the newest so many, and once it is old enough by the rule, that value is no longer kept. So a value is
 * looked at when something happens to it, and never again.
 */
export async function nextExpired(known: KnownRows, asset: AssetToLookAt, options: LookOptions): Promise<Expired> {
  return await new Look(known, asset, options).step()
}

/** A key of `value_versions`. */
type ValueKey = readonly string[]

interface EventsBefore {
  readonly keys: readonly ValueKey[]
  /** There may be more before this event. */
  readonly next: string | undefined
}

const placeOf = (partition: string, event: string, limit: number): string => `${limit} ${event} ${partition}`

class Look {
  readonly #known: KnownRows
  readonly #asset: AssetToLookAt
  readonly #options: LookOptions
  readonly #names: readonly string[]
  readonly #inUse: ReturnType<typeof valuesInUse>
  readonly #before = new Map<string, EventsBefore>()
  /** By key; undefined for what stored nothing. */
  readonly #rows = new Map<string, ValueVersionRow | undefined>()
  /** The status of the partitions of this step. */
  readonly #current = new Map<string, StatusRow | undefined>()

  constructor(known: KnownRows, asset: AssetToLookAt, options: LookOptions) {
    this.#known = known
    this.#asset = asset
    this.#options = options
    this.#names = keysOfAsset(known.rows(), asset.key)
    this.#inUse = valuesInUse(known.rows())
  }

  async step(): Promise<Expired> {
    const { events, isAll } = await this.#made()
    const { now, graceMs } = this.#options
    const dueUntil = Math.min(expiredBefore(this.#asset.rule, now), now - graceMs)
    const times = madeTimes(events)
    const timeOf = (event: string): number => times.get(event) ?? 0
    const isDue = (event: string): boolean => timeOf(event) <= dueUntil && ulidTime(event) < this.#inUse.since
    await this.#lookAhead([...events].flatMap(([event, rows]) => (isDue(event) ? rows : [])))
    const found = new Map<string, ValueVersionRow>()
    let passed = this.#asset.after
    for (const [event, rows] of events) {
      const at = timeOf(event)
      if (at > dueUntil) {
        // What comes after one that is dated in the future says how old it is at least.
        const next = at > now && !isAll && passed !== this.#asset.after ? 'more' : now + at - dueUntil
        return { values: [...found.values()], passed, next }
      }
      if (ulidTime(event) >= this.#inUse.since) return { values: [...found.values()], passed, next: now + WAIT_MS }
      const pushedOut = await this.#pushedOutBy(rows)
      if (pushedOut === 'in use') return { values: [...found.values()], passed, next: now + WAIT_MS }
      for (const value of pushedOut) found.set(`${value.event_id} ${value.partition_key}`, value)
      passed = event
    }
    return { values: [...found.values()], passed, next: isAll ? 'nothing' : 'more' }
  }

  /** The next materializations, whole events, under all names of the asset. */
  async #made(limit = STEP): Promise<{ events: Map<string, ValueVersionRow[]>; isAll: boolean }> {
    const table = this.#known.coldRows(valueVersions)
    const found = await Promise.all(this.#names.map((name) => table.after([name, this.#asset.after], limit)))
    // The last event of a page may have rows on the next one.
    const ends = found.flatMap((rows) => (rows.length === limit ? [rows.at(-1)?.event_id ?? ''] : []))
    const end = ends.toSorted()[0]
    const rows = found.flat().filter(({ event_id }) => end === undefined || event_id < end)
    const isInFuture = ({ materialized_at }: ValueVersionRow): boolean => (materialized_at ?? 0) > this.#options.now
    if (rows.every(isInFuture) && end !== undefined) return await this.#made(limit * 4)
    const sorted = rows.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))
    return { events: Map.groupBy(sorted, ({ event_id }) => event_id), isAll: end === undefined }
  }

  /** The values that a materialization pushed out, in each partition that it made. */
  async #pushedOutBy(rows: readonly ValueVersionRow[]): Promise<ValueVersionRow[] | 'in use'> {
    const pushedOut: ValueVersionRow[] = []
    for (const { partition_key, event_id, outcome } of rows) {
      if (outcome !== 'SUCCEEDED') continue
      const value = await this.#behind(partition_key, event_id)
      if (value === undefined || value.removed_at !== null || this.#isCurrent(value)) continue
      if (this.#inUse.made.has(value.materialization_id ?? '')) return 'in use'
      if (!(await this.#isKeptElsewhere(value))) pushedOut.push(value)
    }
    return pushedOut
  }

  /** The value of a partition right behind the newest so many, when this one was the newest. */
  async #behind(partition: string, event: string): Promise<ValueVersionRow | undefined> {
    let { versions: left } = this.#asset.rule
    for (let from: string | undefined = event; from !== undefined; ) {
      const made = await this.#madeBefore(partition, from, left + BACK)
      const value = made.rows[left - 1]
      if (value !== undefined) return value
      left -= made.rows.length
      from = made.next
    }
    return undefined
  }

  /** The values that were made of a partition before an event, newest first. What stored nothing is passed over. */
  async #madeBefore(partition: string, event: string, limit: number): Promise<{ rows: ValueVersionRow[]; next?: string }> {
    const { keys, next } =
      this.#before.get(placeOf(partition, event, limit)) ?? (await this.#eventsBefore(partition, event, limit))
    const missing = keys.filter((key) => !this.#rows.has(key.join(' ')))
    if (missing.length > 0) await this.#readRows(missing)
    const rows = keys.flatMap((key) => this.#rows.get(key.join(' ')) ?? [])
    return { rows, ...(next !== undefined && { next }) }
  }

  /** What was made of a partition before an event, newest first, by its key in `value_versions`. */
  async #eventsBefore(partition: string, event: string, limit: number): Promise<EventsBefore> {
    const versions = this.#known.coldRows(dataVersions)
    const found = await Promise.all(this.#names.map((name) => versions.before([name, partition, event], limit)))
    // Under one name there may be more: only what is not older than the last of these is complete.
    const ends = found.flatMap((rows) => (rows.length === limit ? [rows.at(-1)?.event_id ?? ''] : []))
    const next = ends.toSorted().at(-1)
    const made = found.flat().filter(({ event_id }) => next === undefined || event_id >= next)
    const sorted = made.toSorted((a, b) => (a.event_id > b.event_id ? -1 : 1))
    return { keys: sorted.map(({ asset_key, event_id }) => [asset_key, event_id, partition]), next }
  }

  /**
   * Reads at once what the step will ask for one by one: neighbours in a table are in the same row group, which is decoded once. A step over
   * many partitions takes a fraction of the time.
   */
  async #lookAhead(made: readonly ValueVersionRow[]): Promise<void> {
    const limit = this.#asset.rule.versions + BACK
    const succeeded = made.filter(({ outcome }) => outcome === 'SUCCEEDED')
    const byPartition = succeeded.toSorted((a, b) => (a.partition_key < b.partition_key ? -1 : 1))
    for (const { partition_key, event_id } of byPartition) {
      const before = await this.#eventsBefore(partition_key, event_id, limit)
      this.#before.set(placeOf(partition_key, event_id, limit), before)
    }
    await this.#readRows([...this.#before.values()].flatMap(({ keys }) => keys))
    const partitions = [...new Set(byPartition.map(({ partition_key }) => partition_key))]
    const keys = partitions.flatMap((partition) => this.#names.map((name) => [name, partition]))
    const rows = (await this.#known.coldRows(partitionStatus).lookup(keys)).values()
    for (const partition of partitions) this.#current.set(partition, joinedStatus([...rows.take(this.#names.length)]))
  }

  async #readRows(keys: readonly ValueKey[]): Promise<void> {
    const rows = await this.#known.coldRows(valueVersions).lookup(keys.map((key) => [...key]))
    for (const [i, key] of keys.entries()) this.#rows.set(key.join(' '), rows[i])
  }

  /** By the order of events it may be older, if an earlier version recorded it and a clock was set back. */
  #isCurrent({ partition_key, event_id }: ValueVersionRow): boolean {
    return this.#current.get(partition_key)?.last_materialization_event_id === event_id
  }

  /** A file that was made for several partitions is kept for as long as one of them keeps it. */
  async #isKeptElsewhere({ asset_key, event_id, partition_key, partitions }: ValueVersionRow): Promise<boolean> {
    const count = partitions ?? 1
    if (count === 1) return false
    const rows = await this.#known.coldRows(valueVersions).after([asset_key, event_id, ''], count)
    for (const row of rows) {
      if (row.event_id !== event_id || row.partition_key === partition_key) continue
      if (!(await this.#isPushedOut(row))) return true
    }
    return false
  }

  async #isPushedOut(value: ValueVersionRow): Promise<boolean> {
    const { versions } = this.#asset.rule
    // No event has a larger id.
    const { rows } = await this.#madeBefore(value.partition_key, LAST, versions + BACK)
    const newer = rows.filter(({ event_id }) => event_id > value.event_id)
    if (newer.length < versions) return false
    // The one that pushed it out was made before those that followed it, whatever their clocks showed.
    const pushedAt = Math.min(...newer.slice(0, newer.length - versions + 1).map(madeAt))
    return pushedAt <= expiredBefore(this.#asset.rule, this.#options.now)
  }
}

const madeAt = ({ materialized_at, event_id }: ValueVersionRow): number => materialized_at ?? ulidTime(event_id)

/**
 * When each was made, by the clock: none was made later than one that follows it. A clock that was ahead may have recorded a time that is
 * yet to come.
 */
function madeTimes(events: ReadonlyMap<string, readonly ValueVersionRow[]>): ReadonlyMap<string, number> {
  const times = new Map<string, number>()
  let next = Number.POSITIVE_INFINITY
  for (const [event, rows] of [...events].reverse()) {
    next = Math.min(next, ...rows.slice(0, 1).map(madeAt))
    times.set(event, next)
  }
  return times
}

/** After every id of an event. */
const LAST = '~'
