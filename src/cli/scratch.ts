import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ObjectStore } from '../ports/object-store.ts'
import { folderStore } from '../server/components.ts'

/** An empty folder store for the duration of some work. It is removed afterwards, even when the work fails or is interrupted. */
export async function withScratch<T>(work: (scratch: ObjectStore) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'servo-'))
  const cleanUp = (): Promise<void> => rm(dir, { recursive: true, force: true })
  const interrupted = (): void => void cleanUp().finally(() => process.exit(130))
  process.once('SIGINT', interrupted)
  try {
    return await work(folderStore(dir))
  } finally {
    process.off('SIGINT', interrupted)
    await cleanUp()
  }
}
