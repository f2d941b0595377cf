/**
 * How the leader hears of segments that other processes wrote. Hearing is only faster than looking: a listener may be told
 * of a segment twice, late or, if `missesNothing` is false, not at all, and must look at the ledger from time to time.
 * Every adapter passes `testing/conformance/notifier.ts`.
 */
export interface Notifier {
  /** Says that a segment is durable. Never throws: a process that does not hear of it finds it by looking. */
  announce(segment: string): void
  /** Begins to listen. Segments announced or written from when this resolves are heard of; own ones too. */
  listen(listener: Listener): Promise<Listening>
}

export interface Listener {
  /** ULIDs of segments that can be read. Their writers may still be waiting for the disk, as with a segment found by looking. */
  onSegments(segments: readonly string[]): void
  /** Something may have gone unheard: look at the ledger now. */
  onMissed(): void
}

export interface Listening {
  /** True while nothing can be written without being heard of: then there is no need to look. */
  readonly missesNothing: boolean
  close(): void
}
