import type { AttemptRow } from './given-up.ts'

const LOCAL = 'local:'

/** The ids of our own workers name their process, so that the next leader knows whose they were. */
export const localWorkerId = (instance: string): string => `${LOCAL}${instance}`

export const isLocalWorker = (workerId: string): boolean => workerId.startsWith(LOCAL)

/** True if a worker elsewhere has it, which no process here can end. */
export const runsElsewhere = ({ state, worker_id }: Readonly<AttemptRow>): boolean =>
  state === 'RUNNING' && worker_id !== null && !isLocalWorker(worker_id)
