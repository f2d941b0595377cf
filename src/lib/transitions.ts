import { assert } from './assert.ts'

/** For each state, the states that may follow it. */
export type Transitions<State extends string> = Readonly<Record<State, readonly State[]>>

/** Returns the next state if it may follow. Any other transition is a bug in Servo, reported before it does harm. */
export const transition = <State extends string>(
  what: string,
  transitions: Transitions<State>,
  from: State,
  to: State,
): State => {
  assert(transitions[from].includes(to), `${what} that is ${from} does not become ${to}`)
  return to
}
