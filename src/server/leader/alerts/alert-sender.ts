import type { AlertDefinition } from '../../../contract/alert.ts'
import { AlertTried } from '../../../domain/alerts/alert-tried.event.ts'
import { type PendingAlertRow, pendingAlerts } from '../../../domain/alerts/pending-alerts.table.ts'
import type { Reactor } from '../../../engine/loop/reactions.ts'
import { ServoError } from '../../../lib/error.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS, toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import { reactor } from '../reactor.ts'
import { messageFor } from './alert-message.ts'
import type { Answered, Send } from './outgoing.ts'

export interface AlertSenderOptions {
  readonly clock: AlarmClock
  readonly rows: () => Rows
  readonly target: (name: string) => AlertDefinition | undefined
  readonly project: () => string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly submit: (events: readonly NewEvent[]) => Promise<unknown>
  /** Throws if another process leads. */
  readonly checkLeads: () => Promise<void>
  readonly send: Send
  readonly onTried: (status: 'pending' | 'delivered' | 'failed') => void
  readonly onTrouble: (error: unknown) => void
}

/** The pauses that Standard Webhooks recommends: a day and some hours in all. */
const PAUSES_MS = [5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS]
const TIMEOUT_MS = 20 * SECOND_MS
/** A target that is away for long gets the newest of what happened. */
const MAX_WAITING = 1_000
const LONGEST_PAUSE_MS = 12 * HOUR_MS

/**
 * Sends alerts: to each target one at a time, the oldest first. Each try is recorded with its result, and all tries of an alert have the
 * same id. A process that ends between sending and recording leaves a try that is made again, so that a target may get an alert twice,
 * and recognises it by that id. It remembers only which targets it is busy with; everything else is in the rows.
 */
export class AlertSender {
  readonly #options: AlertSenderOptions
  readonly #busy = new Set<string>()
  #cancelAlarm: (() => void) | undefined
  #mayAct = false
  #isStopped = false

  constructor(options: AlertSenderOptions) {
    this.#options = options
  }

  get reactors(): readonly Reactor[] {
    return [reactor(pendingAlerts, () => this.#look())]
  }

  /** The project is loaded: its targets are known. */
  projectKnown(): void {
    this.#mayAct = true
    this.#look()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelAlarm?.()
  }

  /** Sends what is due, and sets an alarm for what will be. */
  #look(): void {
    if (this.#isStopped || !this.#mayAct) return
    const now = this.#options.clock.now()
    const due = new Map<string, Readonly<PendingAlertRow>[]>()
    let next = Number.POSITIVE_INFINITY
    for (const row of this.#options.rows().hot(pendingAlerts).all()) {
      if (row.next_try_at <= now) due.set(row.target, [...(due.get(row.target) ?? []), row])
      else next = Math.min(next, row.next_try_at)
    }
    for (const [target, rows] of due) if (!this.#busy.has(target)) void this.#sendAll(target, rows)
    this.#cancelAlarm?.()
    this.#cancelAlarm = Number.isFinite(next)
      ? this.#options.clock.after(Math.min(next - now, LONGEST_PAUSE_MS), () => this.#look())
      : undefined
  }

  async #sendAll(target: string, rows: Readonly<PendingAlertRow>[]): Promise<void> {
    this.#busy.add(target)
    try {
      rows.sort((a, b) => a.raised_at - b.raised_at || (a.alert_id < b.alert_id ? -1 : 1))
      const tooMany = rows.splice(0, Math.max(0, rows.length - MAX_WAITING))
      for (const row of tooMany) await this.#record(row, { error: `more than ${MAX_WAITING} alerts were waiting`, final: true })
      for (const row of rows) {
        if (this.#isStopped) return
        await this.#record(row, await this.#try(row))
      }
    } catch (error) {
      if (!this.#isStopped) this.#options.onTrouble(error)
      // What could not be recorded is sent again, and not at once.
      await this.#options.clock.sleep(MINUTE_MS)
    } finally {
      this.#busy.delete(target)
      this.#look()
    }
  }

  async #try(row: Readonly<PendingAlertRow>): Promise<Answered> {
    const { clock, environment: env, send, checkLeads } = this.#options
    const definition = this.#options.target(row.target)
    if (definition === undefined) return { error: 'the config has no such alert any more', final: true }
    const message = messageFor(row, definition, { env, now: clock.now(), project: this.#options.project() })
    if ('missing' in message) return { error: message.missing, final: false }
    await checkLeads()
    return await send({ ...message, allowPrivate: definition.allow_private, timeoutMs: TIMEOUT_MS })
  }

  async #record(row: Readonly<PendingAlertRow>, result: Answered): Promise<void> {
    const { clock, submit, onTried, onTrouble } = this.#options
    const tried = row.tries + 1
    const pauseMs = PAUSES_MS[row.tries]
    const isOver = ('error' in result && result.final) || isGone(result) || pauseMs === undefined
    const status = isDelivered(result) ? 'delivered' : isOver ? 'failed' : 'pending'
    const error = 'error' in result ? result.error : isDelivered(result) ? undefined : `it answered ${result.status}`
    const waitMs = Math.min(LONGEST_PAUSE_MS, Math.max(pauseMs ?? 0, 'retryAfterMs' in result ? (result.retryAfterMs ?? 0) : 0))
    await submit([
      newEvent(AlertTried, {
        alert_id: row.alert_id,
        try: tried,
        status,
        http_status: 'status' in result ? result.status : null,
        error: error ?? null,
        next_try_at: status === 'pending' ? toIso(clock.now() + waitMs) : null,
      }),
    ])
    onTried(status)
    // The first failure and the last are worth a line; those in between are on record.
    if (status === 'failed' || (status === 'pending' && tried === 1)) onTrouble(notDelivered(row, error ?? '', status))
  }
}

const isDelivered = (result: Answered): boolean => 'status' in result && result.status >= 200 && result.status < 300
/** By Standard Webhooks a receiver that answers 410 wants nothing more. */
const isGone = (result: Answered): boolean => 'status' in result && result.status === 410

const notDelivered = ({ target, kind, alert_id }: Readonly<PendingAlertRow>, error: string, status: string): ServoError =>
  new ServoError('unavailable', 'alert_not_delivered', `alert ${target} (${kind}, ${alert_id}) did not arrive: ${error}`, {
    hint:
      status === 'failed'
        ? 'It is not sent again. servo alerts test tries the target.'
        : 'It is sent again for a day. servo alerts test tries the target.',
  })
