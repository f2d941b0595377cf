import { checksummedJson, readChecksummed } from '../../engine/files/checksummed-json.ts'
import { Paths, type Scope } from '../../engine/paths.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { DAY_MS, SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'

/** Answers are kept by periods of this length, the present one and the one before: each for 31 days at least, and 62 at most. */
const PERIOD_MS = 31 * DAY_MS
/** As long as a caller waits for the answer to a request of its own that takes long. */
const MAX_WAIT_MS = 10 * SECOND_MS

/** A change that somebody asks for under an id. */
export interface IdentifiedChange {
  /** Who asks: two callers never get each other's answers. */
  readonly caller: string
  /** Method and path: what is paused under an id may be resumed under the same. */
  readonly target: string
  readonly id: string
  /** Everything else that the request says. */
  readonly said: unknown
}

interface KeptAnswer {
  readonly fingerprint: string
  readonly status: number
  /** The JSON of the answer; null if it has a secret that is told once. */
  readonly body: string | null
}

interface InFlight {
  readonly fingerprint: string
  readonly answer: Promise<KeptAnswer>
}

/**
 * The answers to changes that were asked for under an id. The first answer is kept in the store, so that a request that is repeated
 * gets it again, after a restart too. A request without an id costs nothing; one with an id costs one write, after the change is durable. If
 * the process dies between the two, the repetition is recognized by what the change recorded, as every change is.
 *
 * Only what was done is kept: a request that was refused may be corrected and sent again under the same id.
 */
export class KeptAnswers {
  readonly #store: ObjectStore
  readonly #folder: string
  readonly #clock: Pick<AlarmClock, 'now' | 'after'>
  readonly #inFlight = new Map<string, InFlight>()
  /** The period in which older ones were last removed. */
  #tidied = -1

  constructor({ store, scope, clock }: { store: ObjectStore; scope: Scope; clock: Pick<AlarmClock, 'now' | 'after'> }) {
    this.#store = store
    this.#folder = new Paths(scope).requests
    this.#clock = clock
  }

  /** Does the work, unless it was done before: then gives the first answer again. */
  async once(request: IdentifiedChange, work: () => Promise<Response>, keepsBody: boolean): Promise<Response> {
    const name = sha256(canonicalJson([request.caller, request.target, request.id]))
    const fingerprint = sha256(canonicalJson(request.said))
    const earlier = this.#inFlight.get(name)
    if (earlier !== undefined) {
      if (earlier.fingerprint !== fingerprint) throw reused(request.id)
      return replayed(await this.#inTime(earlier.answer))
    }
    const { promise: answer, resolve, reject } = Promise.withResolvers<KeptAnswer>()
    // Nobody may wait for it.
    answer.catch(() => undefined)
    this.#inFlight.set(name, { fingerprint, answer })
    try {
      const kept = await this.#read(name)
      if (kept !== undefined) {
        if (kept.fingerprint !== fingerprint) throw reused(request.id)
        resolve(kept)
        return replayed(kept)
      }
      const response = await work()
      const made = { fingerprint, status: response.status, body: await response.text() }
      if (response.ok) await this.#keep(name, keepsBody ? made : { ...made, body: null })
      resolve(made)
      return new Response(made.body, { status: made.status, headers: response.headers })
    } catch (error) {
      reject(error)
      throw error
    } finally {
      this.#inFlight.delete(name)
    }
  }

  async #inTime(answer: Promise<KeptAnswer>): Promise<KeptAnswer> {
    const patience = Promise.withResolvers<never>()
    const cancel = this.#clock.after(MAX_WAIT_MS, () => patience.reject(inFlight()))
    return await Promise.race([answer, patience.promise]).finally(cancel)
  }

  get #period(): number {
    return Math.floor(this.#clock.now() / PERIOD_MS)
  }

  #path(period: number, name: string): string {
    return `${this.#folder}${period}/${name}.json`
  }

  async #read(name: string): Promise<KeptAnswer | undefined> {
    for (const period of [this.#period, this.#period - 1]) {
      const path = this.#path(period, name)
      const bytes = await this.#store.get(path)
      if (bytes === undefined) continue
      try {
        return readChecksummed<KeptAnswer>('answer', bytes, path)
      } catch (error) {
        // The repetition is recognized by what the change recorded.
        if (!isServoError(error, 'corrupt')) throw error
      }
    }
    return undefined
  }

  async #keep(name: string, answer: KeptAnswer): Promise<void> {
    const period = this.#period
    try {
      await this.#store.create(this.#path(period, name), checksummedJson('answer', answer))
    } catch (error) {
      // The change is durable, and the caller must hear that it is.
      if (!isServoError(error, 'unavailable')) throw error
    }
    if (this.#tidied === period) return
    this.#tidied = period
    void this.#removeBefore(period - 1).catch(() => {
      this.#tidied = -1
    })
  }

  async #removeBefore(first: number): Promise<void> {
    for await (const name of this.#store.folders(this.#folder)) {
      if (!/^\d+$/.test(name) || Number(name) >= first) continue
      for await (const { path } of this.#store.list(`${this.#folder}${name}/`)) await this.#store.delete(path)
    }
  }
}

function replayed({ status, body }: KeptAnswer): Response {
  if (body !== null)
    return new Response(body, { status, headers: { 'content-type': 'application/json', 'idempotency-replayed': 'true' } })
  throw new ServoError('conflict', 'answer_not_kept', 'this was done before, and its answer had a secret that is not kept', {
    hint: 'Use what the first answer said. If it is lost, revoke that and ask anew under another id.',
  })
}

const reused = (id: string): ServoError =>
  new ServoError('conflict', 'idempotency_key_reused', `another request used the id ${JSON.stringify(id.slice(0, 60))}`, {
    hint: 'Use a new id, or repeat the first request unchanged.',
  })

const inFlight = (): ServoError =>
  new ServoError('conflict', 'request_in_flight', 'the same request is still being answered', {
    hint: 'Ask again in a moment.',
    facts: { retry_after_sec: 1 },
  })
