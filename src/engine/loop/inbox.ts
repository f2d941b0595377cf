import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { Verdict } from '../../model/event.ts'
import type { Minted } from '../ledger/mint.ts'

/** What became of the events of one submission. */
export interface Submitted {
  readonly events: readonly Envelope[]
  readonly verdicts: readonly Verdict[]
}

/** The facts of one caller, who waits for them to be durable. */
export interface Submission {
  readonly minted: Minted
  verdicts: Verdict[]
  resolve(submitted: Submitted): void
  reject(error: unknown): void
}

/** True if the caller is answered before anything is decided. */
export const isAnsweredFirst = ({ minted }: Submission): boolean =>
  minted.checked.some(({ definition }) => definition.answeredFirst === true)

/** The verdicts on its events, in their order. */
export function verdictsOn({ minted }: Submission, verdicts: ReadonlyMap<string, Verdict>): Verdict[] {
  return minted.events.map(({ event_id }) => {
    const verdict = verdicts.get(event_id)
    assert(verdict !== undefined, 'an event that was folded has a verdict')
    return verdict
  })
}

/** Submissions are refused while more than this waits for the write in flight. */
const MAX_WAITING_BYTES = 128 << 20

/** Submissions that are not folded yet, and the size of all that are not answered yet. */
export class Inbox {
  #waiting: Submission[] = []
  /** Taken out, and not folded yet. */
  #taken: readonly Submission[] = []
  #unansweredBytes = 0

  /** How many wait to be folded. */
  get size(): number {
    return this.#waiting.length
  }

  /** Lets facts in, or refuses them when too much waits. Resolves when they are answered. */
  add(minted: Minted, onAdded: () => void): Promise<Submitted> {
    if (this.#unansweredBytes + minted.bytes > MAX_WAITING_BYTES) {
      throw new ServoError('unavailable', 'ledger_busy', `${this.#unansweredBytes} bytes are waiting to be written`, {
        hint: 'Slow down and try again.',
      })
    }
    return new Promise((resolve, reject) => {
      this.#unansweredBytes += minted.bytes
      this.#waiting.push({ minted, verdicts: [], resolve, reject })
      onAdded()
    })
  }

  /** Takes out everything that waits. */
  take(): readonly Submission[] {
    this.#taken = this.#waiting.splice(0)
    return this.#taken
  }

  /** The submissions that were taken out are folded, and belong to a segment now. */
  folded(): void {
    this.#taken = []
  }

  answer({ minted, verdicts, resolve }: Submission): void {
    this.#unansweredBytes -= minted.bytes
    resolve({ events: minted.events, verdicts })
  }

  /** Empties the inbox. Returns everything that was not folded yet. */
  giveUp(): Submission[] {
    return [...this.#taken, ...this.#waiting.splice(0)]
  }
}
