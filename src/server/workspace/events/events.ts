import type { EventPage, EventsAfter, WireEvent } from '../../../api/events/event-contract.ts'
import type { ServedEvents } from '../../../api/events/event-routes.ts'
import type { Stalls } from '../../../api/events/event-stream.ts'
import { isRunOver, runs } from '../../../domain/runs/runs.table.ts'
import { Archives } from '../../../engine/ledger/archives.ts'
import { type Beginning, RecordedEvents } from '../../../engine/loop/recorded-events.ts'
import { Paths } from '../../../engine/paths.ts'
import { SECOND_MS, toMs } from '../../../lib/time.ts'
import { ulidFloor } from '../../../lib/ulid.ts'
import type { Envelope } from '../../../model/envelope.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import { type EventTail, frameOf, sentEvent, type WantedEvents } from '../../leader/events/event-tail.ts'
import { wantedEvents } from '../../leader/events/wanted-events.ts'
import type { Knowledge } from '../knowledge.ts'
import type { RunReader } from '../run-reader.ts'

export interface EventsOptions {
  readonly runs: Pick<RunReader, 'resolve' | 'get'>
  /** The newest events of this process, as they become durable. Absent in a process that only reads. */
  readonly live?: { readonly tail: EventTail; readonly clock: AlarmClock } | undefined
  /** Told of segments that cannot be read. */
  readonly onDamage: (path: string, message: string) => void
}

/** Connections through proxies are cut when nothing comes for a minute, often sooner. */
const HEARTBEAT_MS = 15 * SECOND_MS
/** Frames of history are put together up to this size. */
const BATCH_BYTES = 256 << 10

/** Where a reader is, and what it wants. */
interface Following {
  readonly wanted: WantedEvents
  /** Of a run that is over, the last event that matters; undefined while there may be more. */
  readonly end: () => string | undefined
  /** Where to begin if nothing was seen yet. */
  readonly beginning: Beginning | undefined
  /** Only what happens from now on. */
  readonly isFromNow: boolean
}

/** What happened, in the order of the record: from the ledger, and as it happens. */
export class Events implements ServedEvents {
  readonly #known: Knowledge
  readonly #options: EventsOptions
  readonly #recorded: RecordedEvents

  constructor(known: Knowledge, options: EventsOptions) {
    this.#known = known
    this.#options = options
    const place = { store: known.store, scope: known.scope, paths: new Paths(known.scope) }
    this.#recorded = new RecordedEvents({ ...place, archives: new Archives(place) }, ({ path, message }) =>
      options.onDamage(path, message),
    )
  }

  /** Rings when a reader has taken nothing for too long. */
  get stalls(): Stalls {
    return this.#options.live?.clock ?? NEVER
  }

  async page({ limit, ...query }: EventsAfter & { readonly limit: number }): Promise<EventPage> {
    const { wanted, beginning, end, isFromNow } = await this.#following(query)
    const events: WireEvent[] = []
    if (isFromNow) return { events, next_cursor: null }
    const last = end()
    let seen: string | undefined
    for await (const segment of this.#recorded.from(await this.#known.recordedOrder(), beginning)) {
      for (const event of segment) {
        if (events.length === limit) return { events, next_cursor: seen ?? null }
        seen = event.event_id
        if (wanted.matches(event)) events.push(sentEvent(event))
        if (last !== undefined && seen >= last) return { events, next_cursor: null }
      }
    }
    return { events, next_cursor: null }
  }

  async *follow(query: EventsAfter, signal: AbortSignal): AsyncGenerator<WireEvent> {
    const following = await this.#following(query)
    for await (const events of this.#segments(following)) {
      if (signal.aborted) return
      yield* events.filter(following.wanted.matches).map(sentEvent)
    }
  }

  /** What is on record, for a process in which nothing happens. */
  async *#segments({ beginning, isFromNow }: Following): AsyncGenerator<readonly Envelope[]> {
    if (!isFromNow) yield* this.#recorded.from(await this.#known.recordedOrder(), beginning)
  }

  async stream(query: EventsAfter, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined> {
    const { live } = this.#options
    const following = await this.#following(query)
    if (live === undefined) return undefined
    const last = following.end()
    // A browser that has seen the last event connects once more; it is told to stop.
    if (last !== undefined && following.beginning !== undefined && 'after' in following.beginning)
      if (following.beginning.after >= last) return undefined
    return this.#frames(following, live, signal)
  }

  /** A reader takes a batch at a time. What it has not taken is kept nowhere for it: it is in the tail, or in the ledger. */
  async *#frames(
    { wanted, beginning, isFromNow, end }: Following,
    { tail, clock }: NonNullable<EventsOptions['live']>,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    let news = Promise.withResolvers<void>()
    const wake = (): void => news.resolve()
    const pulse = new Pulse(clock, wake)
    // From now on events are kept for this follower, so that none falls between history and what happens.
    const leave = tail.follow(wake)
    signal.addEventListener('abort', wake)
    let from = beginning
    let at = isFromNow ? tail.end : from !== undefined && 'after' in from ? tail.behind(from.after) : undefined
    /** Read in the last segment: what was written but not told yet is not told twice. */
    let read: ReadonlySet<string> = new Set()
    try {
      yield HEARTBEAT
      while (!signal.aborted) {
        if (at === undefined) {
          const [joins, order] = [tail.end, this.#known.recordedOrder()]
          for await (const segment of this.#recorded.from(await order, from)) {
            if (signal.aborted) return
            if (pulse.isQuiet) yield pulse.beat()
            for (const frames of framesOf(segment, wanted)) yield pulse.sent(frames)
            from = { after: segment.at(-1)?.event_id ?? '' }
            read = new Set(segment.map(({ event_id }) => event_id))
            at = tail.behind(from.after)
            if (at !== undefined) break
          }
          at ??= joins
        }
        const batch = tail.read(at, skipping(wanted, read))
        // It is too far behind: the ledger has what is not kept.
        if (batch === undefined) {
          at = undefined
          continue
        }
        if (batch.frames.length > 0) yield pulse.sent(batch.frames)
        if (batch.last !== undefined) {
          from = { after: batch.last }
          if (read.size > 0 && !read.has(batch.last)) read = new Set()
        }
        const isDone = batch.next === at
        at = batch.next
        if (!isDone) continue
        const last = end()
        if (last === '' || (last !== undefined && from !== undefined && 'after' in from && from.after >= last)) return
        if (at === tail.end) await news.promise
        news = Promise.withResolvers<void>()
        if (pulse.isQuiet) yield pulse.beat()
      }
    } finally {
      pulse.stop()
      leave()
      signal.removeEventListener('abort', wake)
    }
  }

  async #following({ after, run, ...filter }: EventsAfter): Promise<Following> {
    const runId = run === undefined ? undefined : await this.#options.runs.resolve(run)
    const wanted = wantedEvents({ ...filter, run: runId })
    const isFromNow = after === 'now'
    const beginning = after === 'beginning' || isFromNow ? await this.#beginningOf(runId) : { after }
    return { wanted, beginning, isFromNow, end: await this.#endOf(runId) }
  }

  /** Nothing of a run happened before it was requested. */
  async #beginningOf(runId: string | undefined): Promise<Beginning | undefined> {
    if (runId === undefined) return undefined
    const { run } = await this.#options.runs.get(runId)
    return { since: ulidFloor(toMs(run.requested_at)) }
  }

  /** Which event a run ended with, as soon as it has ended. */
  async #endOf(runId: string | undefined): Promise<() => string | undefined> {
    if (runId === undefined) return () => undefined
    const { run } = await this.#options.runs.get(runId)
    if (isRunOver(run.state)) return () => run.row_version
    let ended: string | undefined
    return () => {
      if (ended !== undefined) return ended
      const row = this.#known.rows().hot(runs).get(runId)
      // A run leaves memory some time after it has ended, and whoever follows it was shown its last event by then.
      if (row === undefined) ended = ''
      else if (row.finished_at !== null) ended = row.row_version
      return ended
    }
  }
}

/** A comment of an event stream: it says that the connection is alive, and nothing else. The first goes out at once. */
const HEARTBEAT = Buffer.from(': heartbeat\n\n')

/** Notices when nothing was sent for a while. It has one alarm, however much is sent. */
class Pulse {
  isQuiet = false
  #hasSent = false
  #cancel: () => void = () => undefined
  readonly #clock: Pick<AlarmClock, 'after'>
  readonly #wake: () => void

  constructor(clock: Pick<AlarmClock, 'after'>, wake: () => void) {
    this.#clock = clock
    this.#wake = wake
    this.#wait()
  }

  sent(frames: Uint8Array): Uint8Array {
    this.#hasSent = true
    return frames
  }

  beat(): Uint8Array {
    this.isQuiet = false
    return HEARTBEAT
  }

  stop(): void {
    this.#cancel()
  }

  #wait(): void {
    this.#cancel = this.#clock.after(HEARTBEAT_MS, () => {
      this.isQuiet = !this.#hasSent
      this.#hasSent = false
      if (this.isQuiet) this.#wake()
      this.#wait()
    })
  }
}

const NEVER: Stalls = { after: () => () => undefined }

/** Those of some events that are wanted, in batches. */
function* framesOf(events: readonly Envelope[], { matches }: WantedEvents): Generator<Uint8Array> {
  let [frames, bytes]: [Buffer[], number] = [[], 0]
  for (const event of events) {
    if (!matches(event)) continue
    const frame = frameOf(sentEvent(event))
    frames.push(frame)
    bytes += frame.length
    if (bytes < BATCH_BYTES) continue
    yield Buffer.concat(frames)
    ;[frames, bytes] = [[], 0]
  }
  if (frames.length > 0) yield Buffer.concat(frames)
}

const skipping = (wanted: WantedEvents, read: ReadonlySet<string>): WantedEvents =>
  read.size === 0
    ? wanted
    : { name: `${wanted.name} ${[...read].at(-1)}`, matches: (event) => !read.has(event.event_id) && wanted.matches(event) }
