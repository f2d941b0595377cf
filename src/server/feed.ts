import { type RunRow, runs } from '../domain/runs/runs.table.ts'
import { type TaskRow, tasks } from '../domain/tasks/tasks.table.ts'
import type { Reactor } from '../engine/loop.ts'
import type { AnyRow } from '../model/table.ts'

export type Change =
  | { readonly type: 'run'; readonly run: Readonly<RunRow> }
  | { readonly type: 'task'; readonly task: Readonly<TaskRow> }

type Listener = (change: Change) => void

/** Tells whoever listens that a run or a task came into another state, once that is durable. */
export class Feed {
  readonly #listeners = new Set<Listener>()
  /** What was last told of a row: rows change in place, and more often than their state does. */
  readonly #told = new WeakMap<AnyRow, string>()

  get reactors(): readonly Reactor[] {
    return [
      { watches: runs, react: (row) => this.#changed(row, { type: 'run', run: row as RunRow }) },
      { watches: tasks, react: (row) => this.#changed(row, { type: 'task', task: row as TaskRow }) },
    ]
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #changed(row: Readonly<AnyRow>, change: Change): void {
    const now = `${row['state']} ${row['attempt'] ?? ''} ${row['cancel_requested_at'] ?? ''}`
    if (this.#told.get(row) === now) return
    this.#told.set(row, now)
    for (const listener of this.#listeners) listener(change)
  }
}
