import { isServoError, ServoError } from '../../lib/error.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'

/** Why a call is refused before anything of it is done. These are codes of problems, and a fixed set, so that counts of them stay small. */
export const callRefusals = [
  'unauthenticated',
  'token_expired',
  'token_revoked',
  'not_permitted',
  'forbidden',
  'wrong_attempt',
  'wrong_workspace',
  'too_many_requests',
] as const
export type CallRefusal = (typeof callRefusals)[number]

/** The owner of a server is told at once of the first call that is refused for a reason, and then no more often than this. */
const TELL_EVERY_MS = MINUTE_MS

interface Untold {
  calls: number
  /** Method and path of the last one, as the route declares it, and the address from which it came. */
  last: string
}

/** Counts calls that were refused, and tells the owner of the server. Nothing that a caller sent is kept. */
export class RefusedCalls {
  readonly #counts = new Map<CallRefusal, number>()
  readonly #untold = new Map<CallRefusal, Untold>()
  readonly #waiting = new Map<CallRefusal, () => void>()
  readonly #clock: Pick<AlarmClock, 'after'>
  readonly #tell: (error: ServoError) => void

  constructor(clock: Pick<AlarmClock, 'after'>, tell: (error: ServoError) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  /** How many calls were refused since the server started, by reason. */
  get counts(): Readonly<Record<CallRefusal, number>> {
    const all = callRefusals.map((reason) => [reason, this.#counts.get(reason) ?? 0])
    return Object.fromEntries(all)
  }

  /** Call for every error with which a call ended; those that are no refusals are left alone. */
  readonly notice = (error: unknown, route: string, address = ''): void => {
    const reason = isServoError(error) ? callRefusals.find((each) => each === error.code) : undefined
    if (reason === undefined) return
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1)
    const { calls } = this.#untold.get(reason) ?? { calls: 0 }
    this.#untold.set(reason, { calls: calls + 1, last: address === '' ? route : `${route} from ${address}` })
    if (!this.#waiting.has(reason)) this.#tellOf(reason)
  }

  /** Tells nothing more. */
  stop(): void {
    for (const cancel of this.#waiting.values()) cancel()
  }

  #tellOf(reason: CallRefusal): void {
    const untold = this.#untold.get(reason)
    this.#waiting.delete(reason)
    if (untold === undefined) return
    this.#untold.delete(reason)
    this.#waiting.set(
      reason,
      this.#clock.after(TELL_EVERY_MS, () => this.#tellOf(reason)),
    )
    this.#tell(callsRefused(reason, untold))
  }
}

function callsRefused(reason: CallRefusal, { calls, last }: Untold): ServoError {
  const text =
    calls === 1 ? `a call was refused: ${reason} (${last})` : `${calls} calls were refused: ${reason} (last: ${last})`
  return new ServoError('invalid', 'calls_refused', text, {
    hint: 'Find out who calls. servo tokens list shows which tokens there are.',
    facts: { reason, calls },
  })
}
