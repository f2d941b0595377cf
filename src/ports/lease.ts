/**
 * Which process leads: the one that folds the ledger and decides. A lease is for liveness only. Safety comes from epochs and
 * deterministic ids, so a leader that was deposed without knowing it can do no harm; the lease keeps two from working at once.
 * Every adapter passes `testing/conformance/lease.ts`.
 */
export interface Lease {
  /**
   * Becomes the leader if there is none: none ever was, the last one released the lease, its process is proven dead, or it
   * gave no sign of life for as long as the lease allows, by this process's own monotonic clock. Of any number of
   * candidates at most one succeeds. A lease that was copied along with its folder has no holder.
   */
  claim(candidate: Candidate): Promise<HeldLease | HeldByAnother>
  /** The leader, as far as it is known without a challenge; undefined if there is none. */
  leader(): Promise<Leader | undefined>
  /** What a holder kept last; undefined if none kept anything. */
  kept(): Promise<string | undefined>
}

export interface Candidate {
  /** New for every start. */
  readonly name: string
  /** `standing` for a server that stays; `brief` for a command that leads while it runs, and gives way. */
  readonly term: 'standing' | 'brief'
}

export interface Leader extends Candidate {
  /** The number of its claim, which grows with every claim. It is not the epoch of the manifests, which fences writers. */
  readonly number: number
  /** Where it answers; null while it is starting. */
  readonly address: string | null
  /** Its process, for people. */
  readonly pid: number
  readonly host: string
}

export interface HeldByAnother {
  readonly held: false
  readonly leader: Leader
}

/** The lease in the hands of its holder. */
export interface HeldLease {
  readonly held: true
  /** The number of the claim. */
  readonly number: number
  /**
   * False as soon as another process may have taken over: lost, released, or this process was paused for so long that it cannot
   * know. Costs nothing, and is checked before every act. For a process that was only paused, `confirm` finds that it still leads.
   */
  readonly isHeld: boolean
  /** Reads from the store whether the lease is still held. Once lost, it stays lost. */
  confirm(): Promise<boolean>
  /** Publishes the address at which the leader answers. */
  announce(address: string): Promise<void>
  /** What the holder before this one kept, or this one since. */
  readonly kept: string | undefined
  /**
   * Keeps a short text with the lease. Whoever claims the lease next finds it, and keeps it in turn. A power cut may bring back what was
   * kept before.
   */
  keep(text: string): Promise<void>
  /** True if it was lost because the place that it stands in was moved, replaced or deleted. */
  readonly wasMoved: boolean
  /** Called once, when the lease turns out to be lost. Not called for a release. */
  onLost(call: () => void): void
  /** Gives it up, so that the next claim succeeds at once. */
  release(): Promise<void>
}
