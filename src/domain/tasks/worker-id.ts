import type { AttemptRow } from './given-up.ts'

const LOCAL = 'local:'

/** Workers of a process that orchestrates have its name, so that the next one knows whose they were. */
export const localWorkerId = (instance: string): string => `${LOCAL}${instance}`

export const isLocalWorker = (workerId: string): boolean => workerId.startsWith(LOCAL)

/** Whether a worker has it that nobody here has started, and nobody here can end. */
export const runsElsewhere = ({ state, worker_id }: Readonly<AttemptRow>): boolean =>
  state === 'RUNNING' && worker_id !== null && !isLocalWorker(worker_id)
