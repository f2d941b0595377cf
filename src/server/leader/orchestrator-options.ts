import type { LoopOptions } from '../../engine/loop/loop.ts'
import type { Reactor } from '../../engine/loop/reactions.ts'
import type { Rows } from '../../model/rows.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { Components } from '../components.ts'
import type { ForeignDispatchOptions } from './dispatch/foreign-dispatch.ts'
import type { Workers } from './dispatch/workers.ts'
import type { OrchestratorSettings } from './settings.ts'

export interface OrchestratorOptions {
  readonly components: Components
  /** What makes this process the leader. It stops deciding and acting when the lease is lost. */
  readonly lease: HeldLease
  /** Names this process: in manifests, and in front of its workers. New for every start. */
  readonly instance: string
  readonly workers: Workers
  /** How many attempts may run here at a time. */
  readonly concurrency: () => number
  /** A command that leads for a while begins only what it is asked for: the runs it accepts, and those it is told to `carry`. */
  readonly carries?: 'everything' | 'what it is asked for'
  /** What the project says of limits and patience now. Read whenever it matters; `settingsChanged` makes a change count at once. */
  readonly settings?: () => OrchestratorSettings
  /** How workers that are not ours are told of work, and where to look for what they did long ago. */
  readonly foreign?: Pick<ForeignDispatchOptions, 'history' | 'post'>
  /** Besides running tasks, what else shall follow from rows once they are durable. */
  readonly reactors?: readonly Reactor[]
  readonly publishDelayMs?: number
  /** The state was read, for the first time or again after an outage, and nobody has been shown a row of it yet. */
  readonly onOpened?: (rows: Rows) => void
  /** Another process leads now, or the state is damaged: this one is of no use any more. */
  readonly onStopped?: (error: unknown) => void
  /** Trouble that did not stop anything. */
  readonly onTrouble?: (error: unknown) => void
  readonly compaction?: Pick<LoopOptions, 'limits' | 'retention'>
}
