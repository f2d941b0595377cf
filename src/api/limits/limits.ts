import type { ServerResponse } from 'node:http'
import type { ServerLimits } from '../../contract/server-settings.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Access, Caller } from '../access/access.ts'
import { callingClient } from '../access/client.ts'
import { Buckets } from './buckets.ts'

/** What a server takes on if its project says nothing. */
const defaultLimits = {
  /** Two thousand clients that ask once a second may share a token. */
  requests_per_second: 2_000,
  /** Programs that watch a server ask a few times a second. */
  refused_per_second: 50,
  /** Far more than are answered at a time, unless something hangs. */
  requests_in_flight: 1_000,
  /** Each holds a connection, and some memory. */
  streams: 2_000,
} as const

type TakenOn = { readonly [Limit in keyof typeof defaultLimits]: number }

/** After a quiet second, so many come at once. */
const BURST = 2
/** Callers who were let in: while others at their address are refused too often, they go on. */
const MAX_KNOWN = 10_000

/** What a route takes up while it answers: `nothing` for those that must answer whatever happens. */
export type Weight = 'request' | 'wait' | 'nothing'

/** How much a server takes on at a time. What is beyond is refused at once, and costs no memory. */
export class RequestLimits {
  readonly #clock: Pick<AlarmClock, 'monotonic'>
  #limits: TakenOn = defaultLimits
  readonly #callers = new Buckets(sizeOf(defaultLimits.requests_per_second))
  readonly #strangers = new Buckets(sizeOf(defaultLimits.refused_per_second))
  readonly #known = new Set<string>()
  #requests = 0
  #streams = 0

  constructor(clock: Pick<AlarmClock, 'monotonic'>) {
    this.#clock = clock
  }

  /** RequestLimits of a project, where it sets them. */
  use(limits: ServerLimits): void {
    const set = Object.entries(limits).filter(([, value]) => value !== undefined)
    this.#limits = { ...defaultLimits, ...Object.fromEntries(set) }
    this.#callers.resize(sizeOf(this.#limits.requests_per_second))
    this.#strangers.resize(sizeOf(this.#limits.refused_per_second))
  }

  /** How many requests are being answered, and how many streams are open. */
  get now(): { readonly requests: number; readonly streams: number } {
    return { requests: this.#requests, streams: this.#streams }
  }

  /** Begins a request, or refuses it. Call what it returns when nothing of the request is left. */
  enter(weight: Weight): () => void {
    if (weight === 'nothing') return () => undefined
    if (weight === 'wait') return this.#enterStream()
    if (this.#requests >= this.#limits.requests_in_flight) throw tooBusy('requests', this.#limits.requests_in_flight)
    this.#requests += 1
    return once(() => {
      this.#requests -= 1
    })
  }

  /** Counts an answer that is sent bit by bit until its connection is closed. */
  stream(outgoing: Pick<ServerResponse, 'once'> | undefined): void {
    const leave = this.#enterStream()
    if (outgoing === undefined) leave()
    else outgoing.once('close', leave)
  }

  /** Lets callers in who do not ask too often. */
  limited(access: Access): Access {
    return {
      callerOf: async (request) => {
        const { headers } = request
        const { address } = callingClient(request)
        const proof = sha256(headers.get('authorization') ?? headers.get('cookie') ?? '')
        if (!this.#known.has(proof)) this.#checkStranger(address)
        try {
          const caller = await access.callerOf(request)
          this.#remember(proof)
          this.#check(caller)
          return caller
        } catch (error) {
          if (error instanceof ServoError && UNKNOWN.includes(error.code)) {
            this.#known.delete(proof)
            this.#countStranger(address)
          }
          throw error
        }
      },
    }
  }

  /** Counts a request that anybody may make. */
  open(request: Request): void {
    const { address } = callingClient(request)
    this.#checkStranger(address)
    this.#countStranger(address)
  }

  /** Refuses an address from which too many have come who were not let in. */
  #checkStranger(address: string): void {
    const waitMs = this.#strangers.wait(networkOf(address), this.#clock.monotonic())
    if (waitMs > 0) throw tooManyRequests('too many requests without a token that counts', waitMs)
  }

  #countStranger(address: string): void {
    this.#strangers.take(networkOf(address), this.#clock.monotonic())
  }

  #check({ name }: Caller): void {
    const waitMs = this.#callers.take(name, this.#clock.monotonic())
    if (waitMs > 0) throw tooManyRequests(`${name} asks more than ${this.#limits.requests_per_second} times a second`, waitMs)
  }

  #remember(proof: string): void {
    if (this.#known.has(proof)) return
    this.#known.add(proof)
    const [oldest] = this.#known
    if (this.#known.size > MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest)
  }

  #enterStream(): () => void {
    if (this.#streams >= this.#limits.streams) throw tooBusy('streams', this.#limits.streams)
    this.#streams += 1
    return once(() => {
      this.#streams -= 1
    })
  }
}

const UNKNOWN = ['unauthenticated', 'token_expired', 'token_revoked']

const sizeOf = (perSecond: number) => ({ perSecond, burst: BURST * perSecond })

/** Whoever has one address of IPv6 has 2^64 of them. */
const networkOf = (address: string): string => (address.includes(':') ? address.split(':').slice(0, 4).join(':') : address)

function once(call: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) call()
    isDone = true
  }
}

export const tooManyRequests = (message: string, waitMs: number): ServoError =>
  new ServoError('unavailable', 'too_many_requests', message, {
    hint: 'Nothing was done. Wait as long as retry-after says, and ask less often.',
    facts: { retry_after_sec: Math.max(1, Math.ceil(waitMs / SECOND_MS)) },
  })

const tooBusy = (what: string, limit: number): ServoError =>
  new ServoError('unavailable', 'too_busy', `this server has ${limit} ${what} under way, and takes on no more`, {
    hint: 'Nothing was done. Try again.',
  })
