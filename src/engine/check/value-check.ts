import { createHash } from 'node:crypto'
import type { Envelope } from '../../model/envelope.ts'
import type { Registry, StoredFile } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Findings } from './findings.ts'

export interface CheckedValues {
  /** Values that are there and match their checksum. */
  readonly checked: number
  /** Values that are there, and were recorded without a checksum. */
  readonly not_checked: number
  /** Values that were removed by a rule or by a user. */
  readonly removed: number
  /** Those of them whose files are still there. Nobody reads them, and the next pass deletes them. */
  readonly not_deleted: number
}

/** Values are read in parts of this size: they may be larger than memory. */
const PART_BYTES = 4 << 20

/** The files of values that events tell of, and whether they are what was written. */
export class ValueCheck {
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

  async check(store: ObjectStore, root: string, findings: Findings): Promise<CheckedValues> {
    let checked = 0
    let not_checked = 0
    let removed = 0
    let not_deleted = 0
    for (const file of this.#files.values()) {
      const path = `${root}${file.path}`
      if (this.#removed.has(file.path)) {
        removed += 1
        if ((await store.size(path)) !== undefined) not_deleted += 1
        continue
      }
      const damage = await damageOf(store, path, file)
      if (damage !== undefined) findings.report(path, `${path} ${damage}`)
      else if (file.sha256 === undefined) not_checked += 1
      else checked += 1
    }
    return { checked, not_checked, removed, not_deleted }
  }
}

/** Nothing can make a value again but the code that made it. */
const REMEDY = 'restore it from a backup, or run its asset again'

async function damageOf(store: ObjectStore, path: string, { bytes, sha256 }: StoredFile): Promise<string | undefined> {
  const size = await store.size(path)
  if (size === undefined) return `is missing, but an attempt has stored it; ${REMEDY}`
  if (bytes !== undefined && size !== bytes)
    return `is not the value that was stored: it has ${size} bytes instead of ${bytes}; ${REMEDY}`
  if (sha256 === undefined) return undefined
  const hash = createHash('sha256')
  for (let start = 0; start < size; start += PART_BYTES) {
    const part = await store.getRange(path, start, Math.min(PART_BYTES, size - start))
    if (part === undefined) return `is missing, but an attempt has stored it; ${REMEDY}`
    hash.update(part)
  }
  const actual = hash.digest('hex')
  return actual === sha256
    ? undefined
    : `is not the value that was stored: its SHA-256 is ${actual} instead of ${sha256}; ${REMEDY}`
}
