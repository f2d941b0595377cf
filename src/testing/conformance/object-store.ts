import { afterEach, beforeEach, describe } from 'vitest'
import type { ObjectStore } from '../../ports/object-store.ts'
import { deletingObjects } from './object-store/deleting.ts'
import { listingObjects } from './object-store/listing.ts'
import { namingObjects } from './object-store/naming.ts'
import { readingObjects } from './object-store/reading.ts'
import { writingObjects } from './object-store/writing.ts'

/** Opens a store that holds nothing yet; every test asks for one of its own. */
export type OpenStore = () => Promise<{ store: ObjectStore; close?: () => Promise<void> }>

/** Long enough for two thousand durable writes on a slow shared disk, or in a bucket at 50 ms a request. */
const PATIENCE_MS = 60_000

/** The law of `ports/object-store.ts`, as tests. Call it from the test file of an adapter: it conforms when they pass. */
export function objectStoreConformance(name: string, openStore: OpenStore): void {
  describe(name, { timeout: PATIENCE_MS }, () => {
    let opened: Awaited<ReturnType<OpenStore>>

    beforeEach(async () => {
      opened = await openStore()
    }, PATIENCE_MS)

    afterEach(async () => {
      await opened.close?.()
    }, PATIENCE_MS)

    const store = () => opened.store
    writingObjects(store)
    readingObjects(store)
    listingObjects(store)
    deletingObjects(store)
    namingObjects(store)
  })
}
