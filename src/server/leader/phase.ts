import { ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'

/**
 * What an orchestrator is doing.
 * - `opening`: the state is read and folded; nothing is decided yet.
 * - `leading`: facts are taken, decided upon and acted upon.
 * - `recovering`: the ledger could not be written, so memory is worth nothing. Questions and requests are refused as
 *   unavailable, attempts that run go on, and the state is opened again and again until that works.
 * - `stopped`: closed by its owner, deposed, or the state is damaged. Final.
 */
export type Phase = 'opening' | 'leading' | 'recovering' | 'stopped'

const transitions: Transitions<Phase> = {
  opening: ['leading', 'stopped'],
  leading: ['recovering', 'stopped'],
  recovering: ['leading', 'stopped'],
  stopped: [],
}

/** The phase that follows, which must be one that may. */
export const nextPhase = (from: Phase, to: Phase): Phase => transition('an orchestrator', transitions, from, to)

/** Why an orchestrator in this phase takes nothing; `brokenBy` is what made it recover. */
export function unavailableIn(phase: Phase, brokenBy?: unknown): ServoError {
  if (phase === 'stopped') {
    return new ServoError('unavailable', 'closed', 'this server is shutting down', { hint: 'Try again.' })
  }
  const why = phase === 'recovering' && brokenBy instanceof Error ? `: ${brokenBy.message}` : ''
  return new ServoError('unavailable', 'storage_unavailable', `the state of the project cannot be written now${why}`, {
    hint: 'The server goes on by itself once that works. The request may have been recorded: look before you repeat it, or repeat it with the same key.',
  })
}
