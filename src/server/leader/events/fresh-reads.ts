import type { ReadFrom, ReadParameters, Reads } from '../../../api/request/reads.ts'
import { newestEventIn } from '../../../engine/manifest/manifest.ts'
import { ServoError } from '../../../lib/error.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { Orchestrator } from '../orchestrator.ts'
import type { EventTail } from './event-tail.ts'

type Led = Pick<Orchestrator, 'loop' | 'readable' | 'publish'>

/**
 * Lets reads wait for what their callers know of. Ids of events grow along the record, so that the newest id says what answers show. A
 * leader answers from memory, which is never behind; only what reads the published tables may have to wait until they are written.
 */
export class FreshReads implements Reads {
  readonly #orchestrator: Led
  readonly #tail: Pick<EventTail, 'follow'>
  readonly #clock: AlarmClock

  constructor(orchestrator: Led, tail: Pick<EventTail, 'follow'>, clock: AlarmClock) {
    this.#orchestrator = orchestrator
    this.#tail = tail
    this.#clock = clock
  }

  async shows({ wait_for_event_id, fresh, timeout_ms }: ReadParameters, from: ReadFrom): Promise<void> {
    const until = this.#clock.monotonic() + timeout_ms
    if (wait_for_event_id !== undefined) await this.#recorded(wait_for_event_id, until)
    const target = fresh ? this.#newest : wait_for_event_id
    if (from === 'tables' && target !== undefined) await this.#published(target, until)
  }

  /** The newest event that is folded. While the loop recovers nothing is certain, and the question for rows says so. */
  get #newest(): string | undefined {
    void this.#orchestrator.readable
    return this.#orchestrator.loop.compactor.fold.newest?.event_id
  }

  get #inTables(): string | undefined {
    return newestEventIn(this.#orchestrator.loop.compactor.manifest)?.event_id
  }

  async #recorded(id: string, until: number): Promise<void> {
    const isThere = (): boolean => (this.#newest ?? '') >= id
    if (isThere()) return
    let news = Promise.withResolvers<void>()
    const leave = this.#tail.follow(() => news.resolve())
    let isOver = this.#clock.monotonic() >= until
    const cancel = this.#clock.after(Math.max(0, until - this.#clock.monotonic()), () => {
      isOver = true
      news.resolve()
    })
    try {
      while (!isThere()) {
        if (isOver) throw notVisibleYet(id, this.#newest)
        await news.promise
        news = Promise.withResolvers<void>()
      }
    } finally {
      leave()
      cancel()
    }
  }

  /** A publish writes everything that is folded when it begins; one that has begun already may miss the last of it. */
  async #published(id: string, until: number): Promise<void> {
    const late = Promise.withResolvers<'late'>()
    const cancel = this.#clock.after(Math.max(0, until - this.#clock.monotonic()), () => late.resolve('late'))
    try {
      while ((this.#inTables ?? '') < id) {
        if ((await Promise.race([this.#orchestrator.publish(), late.promise])) === 'late')
          throw notVisibleYet(id, this.#inTables)
      }
    } finally {
      cancel()
    }
  }
}

const notVisibleYet = (id: string, position: string | undefined): ServoError =>
  new ServoError('unavailable', 'not_visible_yet', `event ${id} is not on record yet`, {
    hint: 'Ask again. If it stays so, check that the id is one of this workspace.',
    facts: { ...(position !== undefined && { position }) },
  })
