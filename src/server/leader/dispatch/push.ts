import type { DispatchEnvelope } from '../../../contract/dispatch.ts'
import { ServoError } from '../../../lib/error.ts'
import { SECOND_MS } from '../../../lib/time.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { QueuedTask } from '../../../ports/task-queue.ts'

/** Hands an envelope to the queue at this address. Rejects when it was not taken. */
export type Post = (url: string, envelope: DispatchEnvelope) => Promise<void>

export interface PusherOptions {
  readonly clock: AlarmClock
  readonly post: Post
  /** The address of a queue and the envelope for it; undefined when the attempt is over. */
  readonly deliveryOf: (offer: QueuedTask) => Promise<{ url: string; envelope: DispatchEnvelope } | undefined>
  /** Records whether the queue took the dispatch. */
  readonly acknowledge: (offer: QueuedTask, status: 'CREATED' | 'FAILED') => Promise<void>
  readonly onTrouble: (error: unknown) => void
}

/** Half a minute together with the pauses: longer than a service takes to restart or to roll out a new version. */
const TRIES = 6
const POST_TIMEOUT_MS = 30 * SECOND_MS

/** Pushes work to queues. A queue that does not answer is tried again, and then left alone until the next sweep. */
export class Pusher {
  readonly #options: PusherOptions
  readonly #pushing = new Set<string>()

  constructor(options: PusherOptions) {
    this.#options = options
  }

  push(offer: QueuedTask): void {
    if (this.#pushing.has(offer.attempt_id)) return
    this.#pushing.add(offer.attempt_id)
    void this.#deliver(offer)
      .catch((error: unknown) => this.#options.onTrouble(error))
      .finally(() => this.#pushing.delete(offer.attempt_id))
  }

  async #deliver(offer: QueuedTask): Promise<void> {
    const { clock, post, deliveryOf, acknowledge, onTrouble } = this.#options
    for (let attempt = 1; ; attempt++) {
      const delivery = await deliveryOf(offer)
      if (delivery === undefined) return
      try {
        await post(delivery.url, delivery.envelope)
        return await acknowledge(offer, 'CREATED')
      } catch (cause) {
        if (attempt === TRIES) {
          onTrouble(notTaken(offer, delivery.url, cause))
          return await acknowledge(offer, 'FAILED')
        }
      }
      await clock.sleep(SECOND_MS * 2 ** (attempt - 1))
    }
  }
}

/** The message has only the origin of the address: the rest may be a secret between us and the queue. */
function notTaken({ queue, task_key }: QueuedTask, url: string, cause: unknown): ServoError {
  const { origin } = new URL(url)
  return new ServoError('unavailable', 'push_failed', `the queue ${queue} at ${origin} did not accept ${task_key}`, {
    hint: `Servo will push the work again. Check that the service is up, and the address in queues.${queue}.push.`,
    cause,
  })
}

export const postJson: Post = async (url, envelope) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      // The same for every try, so that a queue can recognise a repeated dispatch.
      'idempotency-key': envelope.task_id,
      ...(envelope.traceparent && { traceparent: envelope.traceparent }),
    },
    body: JSON.stringify(envelope),
    // The token goes to the address that was configured and nowhere else.
    redirect: 'manual',
    signal: AbortSignal.timeout(POST_TIMEOUT_MS),
  })
  await response.body?.cancel()
  if (!response.ok) throw new ServoError('unavailable', 'push_refused', `it answered ${response.status}`)
}
