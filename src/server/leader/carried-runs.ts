import { RunRequested } from '../../domain/runs/run-requested.event.ts'
import { isRunOver, runs } from '../../domain/runs/runs.table.ts'
import type { NewEvent, Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'

/**
 * The runs whose tasks this process begins. A server carries all of them. A command that leads for a while carries the runs that it
 * was asked for; the others wait for the next server.
 */
export class CarriedRuns {
  readonly #requested: Set<string> | undefined

  constructor(which: 'everything' | 'what it is asked for') {
    this.#requested = which === 'everything' ? undefined : new Set()
  }

  has(runId: string): boolean {
    return this.#requested === undefined || this.#requested.has(runId)
  }

  add(runId: string): void {
    this.#requested?.add(runId)
  }

  /**
   * Carries the runs that these events request, before they are folded: the first decisions about them follow at once. Call the
   * function that it returns with the verdicts: it drops the runs of refused requests, and returns true if a run existed before,
   * so that its rows have to be shown again.
   */
  addRequested(events: readonly NewEvent[]): (verdicts: readonly Verdict[]) => boolean {
    const added = events.map((event) => this.#addRequested(event))
    return (verdicts) => {
      let isKnown = false
      for (const [i, runId] of added.entries()) {
        if (runId === undefined || verdicts[i]?.kind === 'applied') continue
        if (verdicts[i]?.kind === 'duplicate') isKnown = true
        else this.#requested?.delete(runId)
      }
      return isKnown
    }
  }

  /** The run that is carried because of this event, if it was not carried before. */
  #addRequested({ definition, payload }: NewEvent): string | undefined {
    if (this.#requested === undefined || definition !== RunRequested) return undefined
    const parsed = RunRequested.parse(payload)
    if (!parsed.success || this.#requested.has(parsed.data.run_id)) return undefined
    this.#requested.add(parsed.data.run_id)
    return parsed.data.run_id
  }

  /** The runs that have not ended: the ones carried here, and the ones that wait for a server. */
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
