import type { NewEvent } from './event.ts'
import type { Rows } from './rows.ts'
import type { AnyRow, Table } from './table.ts'

/** What a controller may look at when it decides. */
export interface Observed {
  readonly rows: Rows
  /** Milliseconds since 1970. */
  readonly now: number
  /**
   * The age of the oldest durable event that is not folded yet, zero when there is none.
   */
  readonly lagMs: number
}

/** More than a moment behind, and what seems not to have happened may only not have been read yet. */
export const MAX_LAG_MS = 30_000

/** Whether a controller has to wait while events may be unread. */
export function mustWait(controller: Controller, now: number): boolean {
  return controller.actsOnAbsence === true && (controller.wakeAt?.() ?? Number.POSITIVE_INFINITY) <= now
}

/**
 * Decides what follows from the state: facts and intents, as data. It does no IO, and everything it remembers can be learnt
 * again by observing every row once, which is how it starts, and how a sweep repairs what was overlooked.
 */
export interface Controller {
  readonly name: string
  readonly doc: string
  readonly watches: readonly Table[]
  /**
   * Set by a controller that acts because something did not happen by the moment that `wakeAt` gives. While events may be unread
   * it is not asked when that moment has come, and asked again later: perhaps it did happen.
   */
  readonly actsOnAbsence?: true
  /** A row has changed, or is looked at again. */
  observe(table: Table, row: Readonly<AnyRow>): void
  /** What is to be written down now. Asked again after its answer was folded, until nothing more follows. */
  decide(observed: Observed): readonly NewEvent[]
  /** When it wants to be asked again although nothing happened; undefined when it waits for nothing. */
  wakeAt?(): number | undefined
}
