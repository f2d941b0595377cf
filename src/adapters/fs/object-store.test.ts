import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { objectStoreConformance } from '../../testing/conformance/object-store.ts'
import { fsStore } from './object-store.ts'

objectStoreConformance('a folder', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'servo-store-'))
  const store = fsStore(dir)
  return {
    store,
    async close() {
      await store.close()
      await rm(dir, { recursive: true })
    },
  }
})
