import { RetentionAdvanced } from '../../../domain/retention/retention-advanced.event.ts'
import { retentionState } from '../../../domain/retention/retention-state.table.ts'
import { tasks } from '../../../domain/tasks/tasks.table.ts'
import type { Reactor } from '../../../engine/loop/reactions.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../lib/time.ts'
import { type Transitions, transition } from '../../../lib/transitions.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { RetentionTiming } from '../../components.ts'
import type { CurrentGraph } from '../current-graph.ts'
import type { KnownRows } from '../known-rows.ts'
import { reactor } from '../reactor.ts'
import { type AssetToLookAt, type Expired, nextExpired } from './expired-values.ts'
import { deletePending, type Remover, removeValues } from './remove-values.ts'
import { retainedAssets } from './retained-assets.ts'

export interface RetentionOptions extends RetentionTiming {
  readonly clock: AlarmClock
  /** The rows of the leader, and its way to write. */
  readonly known: () => Remover & { readonly graph: CurrentGraph }
  /** Throws if another process leads. */
  readonly checkLeads: () => Promise<void>
  readonly onTrouble: (error: unknown) => void
}

/** The graces of tables and of values are the same: the documentation of backups by other tools names this time. */
const GRACE_MS = 15 * MINUTE_MS
/** A step takes at most one part in this many of the time. */
const SHARE = 10
/** How often it is put on record how far it has come, when nothing is removed: a start looks at so much again. */
const RECORD_MS = HOUR_MS
const RECORD_STEPS = 20

type RetentionPhase =
  | { readonly kind: 'idle' }
  /** `at` is a time of the monotonic clock. */
  | { readonly kind: 'scheduled'; readonly at: number; cancel(): void }
  | { readonly kind: 'passing'; again: boolean }
  | { readonly kind: 'stopped' }

const transitions: Transitions<RetentionPhase['kind']> = {
  idle: ['scheduled', 'stopped'],
  scheduled: ['scheduled', 'passing', 'stopped'],
  passing: ['idle', 'stopped'],
  stopped: [],
}

/**
 * Removes values that the rules of their assets do not keep, behind everything else. It does nothing in a project that keeps everything,
 * and in the others nothing while nothing happens and nothing is due.
 *
 * Its states:
 * - `idle`: everything that was made was looked at, and nothing will be due.
 * - `scheduled`: a pass begins at a set time, which may become an earlier one.
 * - `passing`: steps follow each other with pauses; what happens meanwhile brings about another pass.
 * - `stopped`: no step begins any more.
 */
export class ValueRetention {
  readonly #options: RetentionOptions
  #phase: RetentionPhase = { kind: 'idle' }
  #isProjectKnown = false
  /** How far it has come with an asset in this process, when that was put on record, and how many steps ago. */
  readonly #passed = new Map<string, { readonly asset: AssetToLookAt; recordedAt: number; steps: number }>()

  constructor(options: RetentionOptions) {
    this.#options = options
  }

  /** Something was made. */
  get reactors(): Reactor[] {
    return [
      reactor(tasks, ({ state }) => {
        if (state === 'SUCCEEDED') this.#noticed()
      }),
    ]
  }

  /** The project is on record, perhaps with other rules: from now on they are followed. */
  projectKnown(): void {
    this.#isProjectKnown = true
    this.#noticed()
  }

  stop(): void {
    if (this.#phase.kind === 'scheduled') this.#phase.cancel()
    if (this.#phase.kind !== 'stopped') this.#enter({ kind: 'stopped' })
  }

  #noticed(): void {
    if (!this.#isProjectKnown) return
    if (this.#phase.kind === 'passing') this.#phase.again = true
    else this.#schedule(this.#options.delayMs ?? MINUTE_MS)
  }

  #schedule(delayMs: number): void {
    const { clock } = this.#options
    if (this.#phase.kind === 'passing' || this.#phase.kind === 'stopped') return
    const at = clock.monotonic() + delayMs
    if (this.#phase.kind === 'scheduled') {
      if (this.#phase.at <= at) return
      this.#phase.cancel()
    }
    this.#enter({ kind: 'scheduled', at, cancel: clock.after(delayMs, () => this.#begin()) })
  }

  #begin(): void {
    const { delayMs = MINUTE_MS, onTrouble } = this.#options
    let next: number | undefined
    this.#enter({ kind: 'passing', again: false })
    void this.#pass()
      .then((due) => {
        next = due
      })
      .catch((error: unknown) => {
        if (this.#phase.kind !== 'stopped') onTrouble(error)
        // A store that fails is asked again, and not at once.
        next = this.#options.clock.now() + 10 * delayMs
      })
      .finally(() => {
        if (this.#phase.kind !== 'passing') return
        const { again } = this.#phase
        this.#enter({ kind: 'idle' })
        // Never at once: what is due at any moment is removed together. Alarms of more than some weeks do not exist.
        if (again) this.#schedule(delayMs)
        else if (next !== undefined) this.#schedule(Math.min(Math.max(next - this.#options.clock.now(), delayMs), DAY_MS))
      })
  }

  /** Looks at everything that is due. Returns when the next will be. */
  async #pass(): Promise<number | undefined> {
    const known = this.#options.known()
    await deletePending(known)
    let next: number | undefined
    for (const recorded of retainedAssets(known)) {
      for (let result: Expired['next'] = 'more'; result === 'more'; ) {
        if (this.#phase.kind === 'stopped') return undefined
        result = await this.#step(recorded)
        if (typeof result === 'number') next = Math.min(next ?? result, result)
      }
    }
    return next
  }

  async #step(recorded: AssetToLookAt): Promise<Expired['next']> {
    const { clock, checkLeads, graceMs = GRACE_MS } = this.#options
    const known = this.#options.known()
    const began = clock.monotonic()
    const progress = this.#progress(recorded)
    const { key, rule } = recorded
    const expired = await nextExpired(known, progress.asset, { now: clock.now(), graceMs })
    const { values, passed, next } = expired
    const moved = passed !== progress.asset.after
    progress.steps += moved ? 1 : 0
    const isLate = progress.steps >= RECORD_STEPS || clock.monotonic() - progress.recordedAt >= RECORD_MS
    const record = progress.steps > 0 && (values.length > 0 || isLate)
    if (record) {
      await checkLeads()
      await removeValues(known, { values, reason: 'expired', by: 'retention', with: [advanced(known, key, rule, passed)] })
    }
    this.#passed.set(key, {
      asset: { key, rule, after: passed },
      recordedAt: record ? clock.monotonic() : progress.recordedAt,
      steps: record ? 0 : progress.steps,
    })
    if (next === 'more') await clock.sleep(Math.max(1, SHARE * (clock.monotonic() - began)))
    return next
  }

  /** What this process knows, if it has looked at the asset by the same rule. */
  #progress(recorded: AssetToLookAt) {
    const known = this.#passed.get(recorded.key)
    const { rule, after } = recorded
    const isSame = known?.asset.rule.versions === rule.versions && known.asset.rule.days === rule.days
    // A user may have asked for a pass meanwhile, which came further.
    if (known !== undefined && isSame && known.asset.after >= after) return known
    return { asset: recorded, recordedAt: this.#options.clock.monotonic(), steps: 0 }
  }

  #enter(next: RetentionPhase): void {
    transition('retention', transitions, this.#phase.kind, next.kind)
    this.#phase = next
  }
}

/** Puts on record how far retention has come with an asset. */
export function advanced(known: KnownRows, asset_key: string, rule: AssetToLookAt['rule'], passed_event_id: string): NewEvent {
  const { versions, days } = rule
  const turn = (known.rows().hot(retentionState).get(asset_key)?.turn ?? 0) + 1
  return newEvent(RetentionAdvanced, { asset_key, versions, days, passed_event_id, turn })
}
