import { isServoError, ServoError } from '../../lib/error.ts'
import { type Transitions, transition } from '../../lib/transitions.ts'
import { createOwn } from '../files/create-own.ts'
import type { LedgerPlace } from '../ledger/read-segment.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { newestManifest } from '../manifest/stored-manifests.ts'
import { createManifest, takeoverOf } from './create-manifest.ts'

type FenceState = 'reading' | 'writing' | 'broken'

/** Where each state may lead. */
const transitions: Transitions<FenceState> = {
  reading: ['writing', 'broken'],
  writing: ['broken'],
  // A later reason may replace the first: a file that could not be read turns out to be gone because of a takeover.
  broken: ['broken'],
}

/**
 * Sees to it that one compactor writes at a time. Its states:
 * - `reading`: it has taken no epoch yet. It may fold, and has written nothing.
 * - `writing`: its epoch stands in a manifest, so that no manifest of a lower epoch can follow.
 * - `broken`: another compactor has taken over, or memory does not follow from the ledger. Every call fails from then on.
 */
export class Fence {
  readonly #place: LedgerPlace
  #state: FenceState = 'reading'
  #reason: ServoError | undefined
  /** Kept for a second try: with a new one, our own first try would look like another compactor's. */
  #takeover: Manifest | undefined

  constructor(place: LedgerPlace) {
    this.#place = place
  }

  /** Throws if this compactor is broken. */
  check(): void {
    if (this.#reason !== undefined) throw this.#reason
  }

  /** The epoch stands in a manifest already. */
  taken(): void {
    this.#enter('writing')
  }

  /** Takes the next epoch unless that was done before. Returns the manifest to follow. */
  async takeEpoch(newest: Manifest, name: string, nowMs: number): Promise<Manifest> {
    if (this.#state === 'writing') return newest
    this.#takeover ??= takeoverOf(newest, name, nowMs)
    await this.createManifest(this.#takeover)
    this.#enter('writing')
    return this.#takeover
  }

  async createManifest(manifest: Manifest): Promise<void> {
    const { store, paths } = this.#place
    const outcome = await createManifest(store, paths, manifest)
    if (outcome === 'taken') throw this.#fenced(`another compactor has published manifest ${manifest.number}`)
    if (outcome === 'passed') throw this.#fenced(`manifest ${manifest.number} is older than what is kept`)
  }

  async createFile(path: string, bytes: Uint8Array): Promise<void> {
    if (await createOwn(this.#place.store, path, bytes)) return
    throw this.break(
      new ServoError('corrupt', 'file_taken', `${path} exists with other contents`, {
        hint: 'Two compactors share an epoch; run `servo verify`.',
        facts: { path },
      }),
    )
  }

  /** From now on every call of this compactor fails for this reason. */
  break(reason: ServoError): ServoError {
    this.#enter('broken')
    this.#reason = reason
    return reason
  }

  /**
   * Explains why a file is gone: if there is a newer manifest, this compactor was overtaken and its files were collected. Undefined if
   * the error means something else, such as damage.
   */
  async explain(error: unknown, held: Manifest): Promise<ServoError | undefined> {
    if (!isServoError(error, 'corrupt') || error.code !== 'file_missing') return undefined
    const { store, paths, scope } = this.#place
    const newest = await newestManifest(store, paths, scope).catch(() => undefined)
    if (newest === undefined || newest.number <= held.number) return undefined
    return this.#fenced('another compactor has taken over, and the files of this one were collected', error)
  }

  #fenced(message: string, cause?: unknown): ServoError {
    return this.break(
      new ServoError('conflict', 'fenced', message, { hint: 'Open the state again: this one is out of date.', cause }),
    )
  }

  #enter(next: FenceState): void {
    this.#state = transition('a compactor', transitions, this.#state, next)
  }
}
