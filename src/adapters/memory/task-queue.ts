import type { AlarmClock } from '../../ports/clock.ts'
import type { QueuedTask, TaskPlace, TaskQueue } from '../../ports/task-queue.ts'

interface Entry {
  readonly task: QueuedTask
  /** Set while a worker has the task: keeps it from coming back when its time to begin is over. */
  cancelReturn: (() => void) | undefined
}

/** Tasks that wait in this process. It holds nothing that the state does not: a new process enqueues everything again. */
export class MemoryTaskQueue implements TaskQueue {
  readonly #clock: AlarmClock
  readonly #queues = new Map<string, Map<string, Entry>>()
  readonly #listeners = new Set<() => void>()

  constructor(clock: AlarmClock) {
    this.#clock = clock
  }

  async enqueue(task: QueuedTask): Promise<'enqueued' | 'exists'> {
    const entries = this.#queues.get(task.queue) ?? new Map<string, Entry>()
    if (entries.has(task.attempt_id)) return 'exists'
    this.#queues.set(task.queue, entries.set(task.attempt_id, { task, cancelReturn: undefined }))
    this.#ring()
    return 'enqueued'
  }

  async take(queues: readonly string[] | undefined, count: number): Promise<QueuedTask[]> {
    const waiting: Entry[] = []
    for (const queue of queues === undefined ? this.#queues.keys() : new Set(queues)) {
      for (const entry of this.#queues.get(queue)?.values() ?? []) if (entry.cancelReturn === undefined) waiting.push(entry)
    }
    const taken = waiting.sort((a, b) => byUrgency(a.task, b.task)).slice(0, count)
    for (const entry of taken) this.#handOut(entry)
    return taken.map(({ task }) => task)
  }

  async has({ queue, attempt_id }: TaskPlace): Promise<boolean> {
    return this.#queues.get(queue)?.has(attempt_id) ?? false
  }

  async forget(task: TaskPlace): Promise<void> {
    this.#remove(task)
  }

  async withdraw(runId: string): Promise<QueuedTask[]> {
    const withdrawn: QueuedTask[] = []
    for (const entries of this.#queues.values())
      for (const { task, cancelReturn } of entries.values())
        if (cancelReturn === undefined && task.run_id === runId) withdrawn.push(task)
    for (const task of withdrawn) this.#remove(task)
    return withdrawn
  }

  onWork(call: () => void): () => void {
    this.#listeners.add(call)
    return () => this.#listeners.delete(call)
  }

  #remove({ queue, attempt_id }: TaskPlace): void {
    const entries = this.#queues.get(queue)
    entries?.get(attempt_id)?.cancelReturn?.()
    entries?.delete(attempt_id)
    if (entries?.size === 0) this.#queues.delete(queue)
  }

  #handOut(entry: Entry): void {
    entry.cancelReturn = this.#clock.after(entry.task.startWithinMs, () => {
      entry.cancelReturn = undefined
      this.#ring()
    })
  }

  #ring(): void {
    for (const call of this.#listeners) call()
  }
}

function byUrgency(a: QueuedTask, b: QueuedTask): number {
  if (a.priority !== b.priority) return b.priority - a.priority
  if (a.since !== b.since) return a.since - b.since
  return a.attempt_id < b.attempt_id ? -1 : 1
}
