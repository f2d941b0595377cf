import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import { isRunOver, runs } from '../../domain/runs/runs.table.ts'
import type { NewEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'

/**
 * The runs whose tasks this process begins. A server that stays carries all of them. A command that leads for a while carries those
 * that it was asked for; the others wait for the next server.
 */
export class CarriedRuns {
  readonly #asked: Set<string> | undefined

  constructor(which: 'everything' | 'what it is asked for') {
    this.#asked = which === 'everything' ? undefined : new Set()
  }

  has(runId: string): boolean {
    return this.#asked === undefined || this.#asked.has(runId)
  }

  add(runId: string): void {
    this.#asked?.add(runId)
  }

  /** A request for a run that is made here is carried out here. */
  addRequested(events: readonly NewEvent[]): void {
    if (this.#asked === undefined) return
    for (const { definition, payload } of events) {
      if (definition !== RunRequested) continue
      const parsed = RunRequested.parse(payload)
      if (parsed.success) this.#asked.add(parsed.data.run_id)
    }
  }

  /** The runs that have not ended: those that are carried here, and those that wait for a server. */
  unfinished(rows: Rows): { carried: string[]; others: string[] } {
    const found: { carried: string[]; others: string[] } = { carried: [], others: [] }
    for (const { run_id, state } of rows.hot(runs).all())
      if (!isRunOver(state)) found[this.has(run_id) ? 'carried' : 'others'].push(run_id)
    return found
  }

  hasUnfinished(rows: Rows): boolean {
    for (const { run_id, state } of rows.hot(runs).all()) if (!isRunOver(state) && this.has(run_id)) return true
    return false
  }
}
