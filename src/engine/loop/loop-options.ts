import type { Controller } from '../../model/controller.ts'
import type { Registry } from '../../model/event.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { MintOptions } from '../ledger/mint.ts'
import type { Damage } from '../ledger/read-segment.ts'
import type { CompactorOptions } from '../publish/compactor.ts'
import type { OnRecorded } from './folded-events.ts'
import type { Reactor } from './reactions.ts'

export interface LoopOptions extends MintOptions, Pick<CompactorOptions, 'limits' | 'retention' | 'lease'> {
  readonly store: ObjectStore
  readonly registry: Registry
  readonly clock: AlarmClock
  readonly name: string
  readonly controllers: readonly Controller[]
  readonly reactors?: readonly Reactor[]
  /** Announces other processes' segments to this loop, and this loop's segments to them. */
  readonly notifier?: Notifier
  /** How often the loop lists the ledger if the notifier may miss segments. */
  readonly lookEveryMs?: number
  /** Collects young garbage: called when much is about to be decided, so that it is not collected in the middle of that. */
  readonly makeRoom?: () => void
  /** Called when the loop cannot continue: the ledger could not be written, or another process has taken over. */
  readonly onBroken?: (error: unknown) => void
  /** Called when something is durable that no table shows yet, and with whether the tables can wait for more. */
  readonly onDurable?: (canWait: boolean) => void
  /** Called with each event of this process, the verdict on it and when it was folded, once it is durable. Called before reactors are shown what it changed. */
  readonly onRecorded?: OnRecorded
  /** Called with each file that turned out to be damaged or missing when the loop was opened, and that it can do without. */
  readonly onFound?: (damage: Damage) => void
  /** Called when the ledger could not be read. The loop tries again. */
  readonly onTrouble?: (error: unknown) => void
}
