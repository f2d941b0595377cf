import type { AlertRule } from '../../domain/alerts/alert-rule.ts'
import type { RequestRun } from '../../domain/automation/request-run.ts'
import type { RunTrace } from '../../domain/runs/run-trace.ts'
import type { Conditions } from '../../domain/schedules/conditions.ts'
import type { LoopOptions } from '../../engine/loop/loop-options.ts'
import type { Reactor } from '../../engine/loop/reactions.ts'
import type { PublisherOptions } from '../../engine/publish/publisher.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { Components } from '../components.ts'
import type { RemoteDispatchOptions } from './dispatch/remote-dispatch.ts'
import type { Workers } from './dispatch/workers.ts'
import type { Readable } from './durable-state.ts'
import type { OrchestratorSettings } from './settings.ts'

export interface OrchestratorOptions {
  readonly components: Components
  /** The lease that makes this process the leader. It stops deciding and acting when the lease is lost. */
  readonly lease: HeldLease
  /** Names this process: in manifests, and in front of its workers. New for every start. */
  readonly instance: string
  readonly workers: Workers
  /** The number of attempts that may run here at a time. */
  readonly concurrency: () => number
  /** A command that leads for a while begins only the runs that it accepts, and the runs given to `carry`. */
  readonly carries?: 'everything' | 'what it is asked for'
  /** Makes the run requests of backfills and schedules. Absent in a process that does only what it is asked. */
  readonly requestRun?: RequestRun | undefined
  /** The alerts of the project. Absent in a process that does only what it is asked. */
  readonly alerts?: (() => readonly AlertRule[]) | undefined
  /** True if schedules tick here. */
  readonly automation?: boolean
  /** Has conditions of schedules evaluated. Without it, ticks that depend on one fail. */
  readonly conditions?: Conditions | undefined
  /** The limits and timing of the project now. They are read on every use; `settingsChanged` makes a change count at once. */
  readonly settings?: () => OrchestratorSettings
  /** How work is pushed to the queues of remote workers, and how their sealed attempts are found. */
  readonly remote?: Pick<RemoteDispatchOptions, 'history' | 'post'>
  /** Further reactors, besides the ones that run tasks. */
  readonly reactors?: readonly Reactor[]
  readonly publishDelayMs?: number
  /** Called when the state was read, at first or again after an outage, before any row of it is shown. */
  readonly onOpened?: (opened: Readable) => void
  /** Called when this process can do nothing more: another one leads, or the state is damaged. */
  readonly onStopped?: (error: unknown) => void
  /** Called with errors that stop nothing. */
  readonly onTrouble?: (error: unknown) => void
  /** Told of everything that is recorded and published, for counting. */
  readonly measure?: Pick<LoopOptions, 'onRecorded'> & Pick<PublisherOptions, 'onPublished'>
  /** Whether a trace is recorded by somebody. Absent: as its caller says, or else always. */
  readonly isSampled?: ((trace: RunTrace) => boolean) | undefined
  readonly compaction?: Pick<LoopOptions, 'limits' | 'retention'>
}
