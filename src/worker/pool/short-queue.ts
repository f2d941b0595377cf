import type { LocalWorker } from './local-worker.ts'

/** To wake a process costs some 0.1 ms: attempts that take much longer gain nothing by sharing that. */
const BRIEF_MS = 2

/** Up to this much work goes to a process that is being woken before a second one is: a few times what waking it costs. */
const JOIN_MS = 0.5

/** An attempt that waits in one process cannot go to another that becomes free, so only this much waits. */
const MAX_WAITING = 16
const MAX_WAITING_MS = 10

/** A queue is filled up when it is almost empty, so that several attempts go with one write. */
const REFILL_AT = 1

/** Nothing waits behind an attempt that already takes longer than was expected of it. */
const OVERDUE_MS = 5

/** Processes in which attempts may wait behind a brief one, because there is little left to do. */
export function shortQueues(workers: Iterable<LocalWorker>): LocalWorker[] {
  const open: LocalWorker[] = []
  for (const worker of workers) {
    const { job, jobs, takesWork } = worker
    if (job === undefined || !takesWork || jobs.length > REFILL_AT + 1) continue
    if (job.expectedMs < BRIEF_MS && job.elapsedMs() < OVERDUE_MS) open.push(worker)
  }
  return open
}

/** The shortest of these queues, if an attempt of this length may wait in it. */
export function placeIn(queues: readonly LocalWorker[], expectedMs: number): LocalWorker | undefined {
  if (expectedMs >= BRIEF_MS) return undefined
  let shortest: LocalWorker | undefined
  for (const worker of queues) if (shortest === undefined || worker.jobs.length < shortest.jobs.length) shortest = worker
  if (shortest === undefined || shortest.jobs.length > MAX_WAITING) return undefined
  return waitingMs(shortest) < MAX_WAITING_MS ? shortest : undefined
}

/** True if an attempt of this length goes to a process that is being woken, although another is idle. */
export function mayJoin(worker: LocalWorker, expectedMs: number): boolean {
  return worker.isBeingWoken && worker.takesWork && worker.jobs.length > 0 && waitingMs(worker) + expectedMs < JOIN_MS
}

const waitingMs = ({ jobs }: LocalWorker): number => jobs.reduce((sum, job) => sum + job.expectedMs, 0)
