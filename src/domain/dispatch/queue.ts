import type { TaskRow } from '../tasks/tasks.table.ts'

/** The queue of our own workers, which this process starts. The workers of all other queues are elsewhere. */
export const LOCAL_QUEUE = 'default'

/** The queue that the author of the asset has named. */
export const queueOf = (task: Readonly<TaskRow>): string => (task.spec as { queue?: string } | null)?.queue ?? LOCAL_QUEUE
