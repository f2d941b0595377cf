import type { Envelope } from '../../model/envelope.ts'
import type { Registry, StoredFile } from '../../model/event.ts'

/** The files of values that events tell of. The order of the events does not matter. */
export class StoredValues {
  /** By path. A fact that was recorded twice tells of the same file. */
  readonly #files = new Map<string, StoredFile>()
  /** Paths of values that were removed since. */
  readonly #removed = new Set<string>()
  readonly #stores: ReadonlyMap<string, NonNullable<Registry['events'][number]['stores']>>
  readonly #removes: ReadonlyMap<string, NonNullable<Registry['events'][number]['removes']>>

  constructor(registry: Registry) {
    this.#stores = new Map(registry.events.flatMap(({ type, stores }) => (stores === undefined ? [] : [[type, stores]])))
    this.#removes = new Map(registry.events.flatMap(({ type, removes }) => (removes === undefined ? [] : [[type, removes]])))
  }

  add(events: readonly Envelope[]): void {
    for (const { event_type, payload } of events) {
      const file = this.#stores.get(event_type)?.(payload)
      if (file !== undefined && this.#files.get(file.path)?.sha256 === undefined) this.#files.set(file.path, file)
      for (const path of this.#removes.get(event_type)?.(payload) ?? []) this.#removed.add(path)
    }
  }

  *kept(): Generator<StoredFile> {
    for (const file of this.#files.values()) if (!this.#removed.has(file.path)) yield file
  }

  *removed(): Generator<StoredFile> {
    for (const file of this.#files.values()) if (this.#removed.has(file.path)) yield file
  }
}
