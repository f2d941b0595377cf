/** The conformance suites of the ports, for adapters of your own. They need `vitest`. */
export { type LeaseProcess, leaseConformance, type OpenedLease, type OpenLease } from './lease.ts'
export { notifierConformance, type OpenedNotifier, type OpenNotifier } from './notifier.ts'
export { type OpenStore, objectStoreConformance } from './object-store.ts'
export { type OpenedSecrets, type OpenSecrets, secretsConformance } from './secrets.ts'
export { type OpenedTaskQueue, type OpenTaskQueue, taskQueueConformance } from './task-queue.ts'
