import type { Manifest } from './manifest.ts'

/** Everything on record as of one moment, in the order in which it was consumed. */
export interface RecordedOrder {
  readonly manifest: Manifest
  /** Segments that are durable and in no manifest yet. */
  readonly tail: readonly string[]
}
