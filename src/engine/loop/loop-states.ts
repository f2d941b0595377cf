import type { Transitions } from '../../lib/transitions.ts'

/** The states of a loop; the loop says what each of them means. */
export type LoopState = 'open' | 'closing' | 'closed' | 'broken'

/** Where each state may lead. */
export const loopTransitions: Transitions<LoopState> = {
  open: ['closing', 'broken'],
  closing: ['closed', 'broken'],
  closed: [],
  broken: [],
}
