import { nodeDisk } from '../adapters/fs/disk.ts'
import { blockingDisk, Journal, type JournalWorld } from '../adapters/fs/journal/journal.ts'
import { type ObjectDisk, objectDisk, writeObject } from '../adapters/fs/journal/write-object.ts'
import type { ObjectWriter } from '../adapters/fs/writer.ts'

export interface JournaledWriter extends ObjectWriter {
  readonly journal: Journal
}

/** What the writer's thread is made of, without the thread: objects are noted in a journal and synced when that is full. */
export async function journaledWriter(
  root: string,
  world: Partial<JournalWorld> & { readonly objects?: ObjectDisk } = {},
): Promise<JournaledWriter> {
  const { objects = objectDisk, ...rest } = world
  const journal = await Journal.open(root, { disk: nodeDisk, blocking: blockingDisk, onTrouble: () => undefined, ...rest })
  if (journal === undefined) throw new Error('there is no journal')
  const entries = new Set<string>()
  return {
    journal,
    write: (order) =>
      new Promise((resolve, reject) => {
        try {
          writeObject(
            order,
            journal,
            ({ outcome, entry }) => {
              if (entry !== undefined) entries.add(order.target)
              resolve(typeof outcome === 'object' ? { error: new Error(outcome.lost.message) } : outcome)
            },
            objects,
          )
        } catch (error) {
          reject(error)
        }
      }),
    settled: (target) => (entries.has(target) ? journal.settle() : undefined),
    close: () => journal.close(),
  }
}
