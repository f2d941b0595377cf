import { SECOND_MS } from '../../lib/time.ts'
import { type Controller, type Decision, mustWait, type Observed } from '../../model/controller.ts'
import type { NewEvent } from '../../model/event.ts'
import type { AnyRow, Table } from '../../model/table.ts'

/** How long a controller that acts on an absence waits before it is asked again, while events may be unread. */
const ASK_AGAIN_MS = 10 * SECOND_MS

/** The controllers of a loop: shows them rows, and asks them what follows. */
export class Controllers {
  readonly #controllers: readonly Controller[]

  constructor(controllers: readonly Controller[]) {
    this.#controllers = controllers
  }

  get tables(): Table[] {
    return this.#controllers.flatMap(({ watches }) => watches)
  }

  /** Shows rows that changed to every controller that watches their table. */
  observe(table: Table, rows: Iterable<AnyRow>): void {
    for (const controller of this.#controllers) {
      if (controller.watches.includes(table)) for (const row of rows) controller.observe(table, row)
    }
  }

  /** Shows every row of each table to every controller that watches it. */
  observeAll(rowsOf: (table: Table) => Iterable<AnyRow>): void {
    for (const controller of this.#controllers) {
      for (const table of controller.watches) for (const row of rowsOf(table)) controller.observe(table, row)
    }
  }

  /** The events of each decision of the controllers. A controller that acts on an absence is asked only if everything was read. */
  decide(observed: Observed, isCaughtUp: () => boolean): (readonly NewEvent[])[] {
    return this.#controllers.flatMap((controller) =>
      mustWait(controller, observed.now) && !isCaughtUp() ? [] : controller.decide(observed).map(eventsOf),
    )
  }

  /** What they have prepared for a moment that is near. */
  prepare(observed: Observed): readonly NewEvent[] {
    return this.#controllers.flatMap((controller) => controller.prepare?.(observed).flatMap(eventsOf) ?? [])
  }

  /** When to ask again although nothing happened. Infinity if no controller waits for anything. */
  wakeAt(now: number): number {
    let next = Number.POSITIVE_INFINITY
    for (const controller of this.#controllers) {
      // A controller that is due but was not asked waits until everything is read.
      const again = mustWait(controller, now) ? now + ASK_AGAIN_MS : controller.wakeAt?.()
      next = Math.min(next, again ?? next)
    }
    return next
  }
}

const eventsOf = (decision: Decision): readonly NewEvent[] => ('definition' in decision ? [decision] : decision)
