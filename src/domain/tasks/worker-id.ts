import type { AttemptRow } from './given-up.ts'

const LOCAL = 'local:'

/** The id of a local worker names the process that started it, so that the next leader recognizes the workers of a dead one. */
export const localWorkerId = (instance: string): string => `${LOCAL}${instance}`

export const isLocalWorker = (workerId: string): boolean => workerId.startsWith(LOCAL)

/** True if a remote worker has the attempt: the server cannot end its process. */
export const runsRemotely = ({ state, worker_id }: Readonly<AttemptRow>): boolean =>
  state === 'RUNNING' && worker_id !== null && !isLocalWorker(worker_id)
