import { leads } from '../engine/ledger/leading.ts'
import { Paths } from '../engine/paths.ts'
import { SECOND_MS } from '../lib/time.ts'
import type { HeldLease } from '../ports/lease.ts'
import type { Components } from './components.ts'
import type { Orchestrator } from './leader/orchestrator.ts'

/** A store that has not answered by then keeps a caller waiting who decides by the answer where to send others. */
const MAX_ANSWER_MS = SECOND_MS
/** Anybody may ask, as often as they like; the store is asked at most once in this time. */
const KEEP_ANSWER_MS = SECOND_MS

interface ReadinessOptions {
  readonly components: Pick<Components, 'store' | 'scope' | 'clock'>
  readonly orchestrator: Orchestrator
  readonly lease: HeldLease
  readonly isProjectLoaded: () => boolean
  /** True if the store has not answered others for a while. */
  readonly isStoreSilent: () => boolean
  readonly isDraining: () => boolean
}

/** Whether a server can do its work, and if not, why. */
export class Readiness {
  readonly #options: ReadinessOptions
  #store: { readonly at: number; readonly answers: Promise<boolean> } | undefined

  constructor(options: ReadinessOptions) {
    this.#options = options
  }

  async unready(): Promise<readonly string[]> {
    const { orchestrator, lease, isProjectLoaded, isStoreSilent, isDraining } = this.#options
    const [isLeader, storeAnswers] = await Promise.all([leads(lease).catch(() => false), this.#storeAnswers()])
    return [
      isDraining() && 'it is stopping',
      !isLeader && 'another process leads this project',
      orchestrator.phase !== 'leading' && 'the state of the project cannot be written',
      (!storeAnswers || isStoreSilent()) && 'the storage does not answer',
      !isProjectLoaded() && 'the project is not loaded',
    ].filter((reason) => reason !== false)
  }

  #storeAnswers(): Promise<boolean> {
    const now = this.#options.components.clock.monotonic()
    if (this.#store === undefined || now - this.#store.at >= KEEP_ANSWER_MS)
      this.#store = { at: now, answers: this.#askStore() }
    return this.#store.answers
  }

  async #askStore(): Promise<boolean> {
    const { store, scope, clock } = this.#options.components
    const late = Promise.withResolvers<boolean>()
    const cancel = clock.after(MAX_ANSWER_MS, () => late.resolve(false))
    const asked = store.size(new Paths(scope).manifestCopy).then(
      () => true,
      () => false,
    )
    return await Promise.race([asked, late.promise]).finally(cancel)
  }
}
