import { routeOf } from '../api/probes/route-templates.ts'
import { logged, problemResponse } from '../api/problem.ts'
import { leads, lostLead } from '../engine/ledger/leading.ts'
import { ServoError } from '../lib/error.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { HeldLease } from '../ports/lease.ts'
import type { Orchestrator } from './leader/orchestrator.ts'
import type { ServerMetrics } from './metrics/server-metrics.ts'
import { extraSecOf, withPatience } from './patience.ts'
import type { WatchedStore } from './watched-store.ts'

interface AnsweringOptions {
  readonly app: { fetch(request: Request, env?: object): Response | Promise<Response> }
  readonly clock: AlarmClock
  readonly store: WatchedStore
  readonly orchestrator: Orchestrator
  readonly lease: HeldLease
  readonly metrics: ServerMetrics
  readonly onTrouble?: ((error: unknown) => void) | undefined
}

/** Whether it is alive is answered in any case, and workers wait for work as long as they like. */
const PATIENT = /^[^/]*\/\/[^/]*\/(?:health\/|[^?]*\/workers\/claim(?:\?|$))/

/** Answers requests of a leader, for as long as it leads and its storage answers. */
export class Answering {
  readonly #options: AnsweringOptions
  #answering = 0
  #isLeaving = false

  constructor(options: AnsweringOptions) {
    this.#options = options
  }

  /** Answers a request. A process that no longer leads throws its answer away and refuses. */
  readonly fetch = async (request: Request, env?: object): Promise<Response> => {
    const { clock, metrics } = this.#options
    const began = clock.monotonic()
    const answer = await this.#answer(request, env)
    metrics.answered(request.method, routeOf(request), answer.status, clock.monotonic() - began)
    return answer
  }

  /** Refuses new requests, and waits a short while until the others are answered. */
  async leave(graceMs: number): Promise<void> {
    this.#isLeaving = true
    const { clock } = this.#options
    for (const began = clock.monotonic(); this.#answering > 0 && clock.monotonic() - began < graceMs; ) await clock.sleep(5)
  }

  async #answer(request: Request, env: object | undefined): Promise<Response> {
    if (this.#isLeaving) return problemResponse(leaving())
    this.#answering += 1
    try {
      const answer = this.#carryOut(request, env)
      if (PATIENT.test(request.url)) return await answer
      const { clock, store, orchestrator } = this.#options
      const isRecovering = (): boolean => orchestrator.phase === 'recovering'
      return await withPatience(answer, { clock, store, extraSec: extraSecOf(request.headers), isRecovering })
    } finally {
      this.#answering -= 1
    }
  }

  async #carryOut(request: Request, env: object | undefined): Promise<Response> {
    const { app, orchestrator, lease, onTrouble } = this.#options
    try {
      const answer = await app.fetch(request, env)
      const { pathname } = new URL(request.url)
      // Memory is ahead of the ledger. A command has waited until its facts are durable; a question waits until its answer is.
      if (request.method === 'GET' && pathname.startsWith('/api/')) await orchestrator.durable()
      // Whether this process leads is part of that answer.
      if (pathname === '/health/ready' || (await leads(lease))) return answer
      return problemResponse(/^\/(?:hooks|pubsub)\//.test(pathname) ? elsewhere() : lostLead(lease))
    } catch (error) {
      const trouble = logged(request, error)
      if (trouble !== undefined) onTrouble?.(trouble)
      return problemResponse(error)
    }
  }
}

/** Senders of messages may never try again after a 4xx. */
const elsewhere = (): ServoError =>
  new ServoError('unavailable', 'deposed', 'another process leads this workspace', {
    hint: 'Send the message again. If it was accepted, it is recognized.',
  })

const leaving = (): ServoError =>
  new ServoError('unavailable', 'closed', 'this server is shutting down', { hint: 'Nothing was done. Try again.' })
