import { ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'

/**
 * The phases of an orchestrator.
 * - `opening`: the state is read and folded; nothing is decided yet.
 * - `leading`: facts are taken, decided upon and acted upon.
 * - `recovering`: the ledger could not be written, so memory cannot be trusted. The state is opened again and again until that
 *   works. Meanwhile running attempts go on, questions are answered from the durable state, and a request waits for the new
 *   loop; a request that has waited too long is refused as unavailable.
 * - `stopped`: closed by its owner, deposed, or the state is damaged. Final.
 */
export type Phase = 'opening' | 'leading' | 'recovering' | 'stopped'

const transitions: Transitions<Phase> = {
  opening: ['leading', 'stopped'],
  leading: ['recovering', 'stopped'],
  recovering: ['leading', 'stopped'],
  stopped: [],
}

/** Gives the next phase, if the transition is allowed. */
export const nextPhase = (from: Phase, to: Phase): Phase => transition('an orchestrator', transitions, from, to)

const MAY_BE_RECORDED = 'The request may have been recorded: check before you repeat it, or repeat it with the same key.'

/** The refusal of an orchestrator in this phase; `brokenBy` is the error that made it recover. */
export function unavailableIn(phase: Phase, brokenBy?: unknown): ServoError {
  if (phase === 'stopped') {
    return new ServoError('unavailable', 'closed', 'this server is shutting down', { hint: 'Try again.' })
  }
  if (phase !== 'recovering') return slowStorage(`A server continues by itself once it is answered. ${MAY_BE_RECORDED}`)
  const why = brokenBy instanceof Error ? `: ${brokenBy.message}` : ''
  return new ServoError(
    'unavailable',
    'storage_unavailable',
    `the state of the project cannot be written at the moment${why}`,
    { hint: `A server continues by itself once it can write. ${MAY_BE_RECORDED}` },
  )
}

/** A write or a read is under way and does not end: nobody knows yet whether it will. */
export const slowStorage = (hint: string): ServoError =>
  new ServoError('unavailable', 'storage_slow', 'the storage of the project has not answered for 10 s', { hint })
