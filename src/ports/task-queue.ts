/**
 * Where tasks wait for workers that poll. The queue is not the truth: a dispatch is a row, and the leader offers every
 * open one again when it starts, under the same id. So a queue may forget everything in a crash, and may hand out the same task
 * twice; the first worker whose start is on record has it. It has no alarms: they are rows, and the leader waits for the next.
 * Every adapter passes `testing/conformance/task-queue.ts`.
 */
export interface TaskQueue {
  /** Adds a task, unless it is there already, waiting or taken. */
  enqueue(task: QueuedTask): Promise<'enqueued' | 'exists'>
  /**
   * Hands out the most urgent tasks of these queues, or of all queues, at most `count`. A task that was handed out waits again when
   * its time to begin is over: a worker that never reported a start has lost it, or was lost itself.
   */
  take(queues: readonly string[] | undefined, count: number): Promise<QueuedTask[]>
  /** True while the task waits or is taken. */
  has(task: TaskPlace): Promise<boolean>
  /** A worker has begun it, or there is nothing to do any more. */
  forget(task: TaskPlace): Promise<void>
  /** Removes and returns the tasks of a run that no worker has taken. */
  withdraw(runId: string): Promise<QueuedTask[]>
  /** Calls back when there may be something to take, until the returned function is called. */
  onWork(call: () => void): () => void
}

export interface TaskPlace {
  readonly queue: string
  /** Follows from run, task and attempt. */
  readonly attempt_id: string
}

export interface QueuedTask extends TaskPlace {
  readonly run_id: string
  readonly task_key: string
  readonly attempt: number
  /** Larger ones first. */
  readonly priority: number
  /** When it was dispatched, in milliseconds since 1970: among equally urgent tasks, the one that has waited longest is next. */
  readonly since: number
  /** How long the worker that takes it has to report its start. */
  readonly startWithinMs: number
  /** Which time it is offered, from 1. */
  readonly number: number
}
