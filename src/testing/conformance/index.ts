/** The conformance suites of the ports, for adapters of your own. They need `vitest`. */
export { type OpenStore, objectStoreConformance } from './object-store.ts'
