import type { NewEvent } from './event.ts'
import type { Rows } from './rows.ts'
import type { AnyRow, Table } from './table.ts'

/** The state that a controller decides from. */
export interface Observed {
  readonly rows: Rows
  /** Milliseconds since 1970. */
  readonly now: number
  /** The age of the oldest durable event that is not folded yet, zero if there is none. */
  readonly lagMs: number
}

/** With a greater lag, an event that seems absent may only be unread. */
export const MAX_LAG_MS = 30_000

/** True if a controller has to wait while events may be unread. */
export function mustWait(controller: Controller, now: number): boolean {
  return controller.actsOnAbsence === true && (controller.wakeAt?.() ?? Number.POSITIVE_INFINITY) <= now
}

/** An event, or several that belong together: all of them are in one segment, or none is. Together they must fit into one. */
export type Decision = NewEvent | readonly NewEvent[]

/**
 * Decides what follows from the state: facts and intents, as data. It does no IO, and everything it remembers can be learnt
 * again by observing every row once, which is how it starts, and how a sweep repairs what was overlooked.
 */
export interface Controller {
  readonly name: string
  readonly doc: string
  readonly watches: readonly Table[]
  /**
   * Set by a controller that acts on an absence: something did not happen by the time that `wakeAt` gives. While events may be unread,
   * it is not asked at that time but later: perhaps it did happen.
   */
  readonly actsOnAbsence?: true
  /** A row has changed, or is shown again by a sweep. */
  observe(table: Table, row: Readonly<AnyRow>): void
  /** What to write now. It is asked again after that was folded, until it returns nothing. */
  decide(observed: Observed): readonly Decision[]
  /**
   * Called shortly before a moment at which it will be asked: works out much of what it will decide then, and returns that to be checked.
   * It still decides by the state of that moment, so that it makes no difference but in time.
   */
  prepare?(observed: Observed): readonly Decision[]
  /** When it wants to be asked again although nothing happened; undefined when it waits for nothing. */
  wakeAt?(): number | undefined
}
