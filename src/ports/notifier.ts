/**
 * Notifies the leader of segments that other processes wrote. It is only faster than listing the ledger: a listener may be notified
 * of a segment twice, late or, if `missesNothing` is false, not at all, and must list the ledger from time to time.
 * Every adapter passes `testing/conformance/notifier.ts`.
 */
export interface Notifier {
  /** Announces that a segment is durable. Never throws: a process that misses it finds the segment in a listing. */
  announce(segment: string): void
  /** Begins to listen. Segments announced or written after this resolves are reported; own ones too. */
  listen(listener: Listener): Promise<Listening>
}

export interface Listener {
  /** ULIDs of segments that can be read. Their writers may still be waiting for the disk, as with a segment found by listing. */
  onSegments(segments: readonly string[]): void
  /** A segment may have been missed: list the ledger now. */
  onMissed(): void
}

export interface Listening {
  /** True while every segment written is reported: then the ledger need not be listed. */
  readonly missesNothing: boolean
  close(): void
}
