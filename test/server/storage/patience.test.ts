import { expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import type { ObjectStore } from '../../../src/ports/object-store.ts'
import { World, type WorldOptions } from '../world.ts'

/** A world in which each write to the ledger takes `writeMs`, once it is slow. */
async function slowWorld(writeMs: number, options: WorldOptions['options'] = {}) {
  const inner = memoryStore()
  const slow = { isSlow: false }
  const trouble: unknown[] = []
  const store: ObjectStore = {
    ...inner,
    create: async (path, bytes) => {
      if (!path.includes('/ledger/')) return await inner.create(path, bytes)
      if (slow.isSlow) await world.clock.sleep(writeMs)
      return await inner.create(path, bytes)
    },
  }
  const world: World = await World.open({ store, options: { onTrouble: (error) => trouble.push(error), ...options } })
  await world.define({ a: [] })
  slow.isSlow = true
  const asked = world.request('r1').then(
    (run) => world.run(run)?.state ?? 'accepted',
    (error: { code: string; message: string }) => `${error.code}: ${error.message}`,
  )
  return { world, asked, slow, trouble }
}

test('[O9] a request that a stopped process has taken is answered when the process goes on', async () => {
  const { world, asked, trouble } = await slowWorld(15 * SECOND_MS)
  await world.clock.advance(SECOND_MS)
  world.clock.stop(40 * SECOND_MS)
  await world.clock.advance(5 * SECOND_MS)
  expect(await asked).not.toMatch(/storage/)
  expect(trouble).toEqual([])
})

test('[O9] a request waits behind another slow write for as long as segments become durable', async () => {
  const { world, asked } = await slowWorld(8 * SECOND_MS)
  await world.clock.advance(SECOND_MS)
  // It goes into the next segment, which is durable at 16 s.
  const behind = world.request('r2').catch((error: unknown) => error)
  await world.clock.advance(20 * SECOND_MS)
  expect(await asked).not.toMatch(/storage/)
  expect(await behind).toMatch(/^run_/)
})

test('[O9] a server refuses a request whose write does not end, and says that it does not', async () => {
  const { world, asked, slow } = await slowWorld(60 * SECOND_MS)
  await world.clock.advance(11 * SECOND_MS)
  expect(await asked).toBe('storage_slow: the storage of the project has not answered for 10 s')
  // The server goes on when the write ends.
  slow.isSlow = false
  await world.clock.advance(60 * SECOND_MS)
  expect(await world.request('r2')).toMatch(/^run_/)
})

test('[O9] a command that leads for a while waits for a write that does not end, and says so once', async () => {
  const { world, asked, trouble } = await slowWorld(60 * SECOND_MS, { carries: 'what it is asked for' })
  await world.clock.advance(50 * SECOND_MS)
  expect(trouble).toMatchObject([{ code: 'storage_slow' }])
  await world.clock.advance(20 * SECOND_MS)
  expect(await asked).not.toMatch(/storage/)
})
