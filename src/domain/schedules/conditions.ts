/** A tick of a schedule whose code has to say whether it runs. */
export interface TickInQuestion {
  readonly schedule_id: string
  readonly schedule_name: string
  readonly definition_version: string
  readonly tick: number
  /** How long the code may take. */
  readonly timeout_ms: number
}

/** What the code said; `failed` if it could not. It cannot be asked while it is `unavailable`, and never again once it was `removed`. */
export type ConditionAnswer =
  | { readonly verdict: 'holds' | 'unavailable' }
  | { readonly verdict: 'does not hold' | 'failed' | 'removed'; readonly reason: string }

/** Has conditions of schedules evaluated, while nobody waits for them. */
export interface Conditions {
  /** The answer. The first question has the condition evaluated, and until that is done there is no answer. */
  ask(question: TickInQuestion): ConditionAnswer | undefined
  /** True while it is of no use to ask: no code of the project can be evaluated. */
  isOut?(): boolean
  /** The tick is decided, and its answer is not needed any more. */
  forget(scheduleId: string): void
}

/** For a process that cannot run the code of schedules: a tick that depends on it fails. */
export const noConditions: Conditions = {
  ask: () => ({ verdict: 'failed', reason: 'its condition could not be evaluated: this server does not run project code' }),
  forget: () => undefined,
}
