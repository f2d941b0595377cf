import type { TaskRow } from '../tasks/tasks.table.ts'

/** The queue of the local workers, which the server starts. All other queues have remote workers. */
export const LOCAL_QUEUE = 'default'

/** The queue that the author of the asset has named. */
export const queueOf = (task: Readonly<TaskRow>): string => (task.spec as { queue?: string } | null)?.queue ?? LOCAL_QUEUE
