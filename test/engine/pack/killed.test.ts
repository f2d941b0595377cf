import { beforeAll, describe, expect, test } from 'vitest'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { reportFact } from '../../../src/testing/facts.ts'
import { faultyStore } from '../../../src/testing/faulty-store.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { isFaultTried } from '../../tried-faults.ts'
import { interceptedStore } from '../intercepted-store.ts'
import { paths, type Workspace } from '../workspace.ts'
import { eventCounts, packAll, packerOf, publishNext, severalDays } from './packed-days.ts'

let start: Workspace
let events: ReadonlyMap<string, number>
let requests: StoreRequest[]

/** A leader that packs all it can and publishes once more, over this store. */
async function leadAndPack(workspace: Workspace, store = workspace.store): Promise<void> {
  const compactor = await workspace.compactor({ store, lease: new ScriptedLease(), name: 'leader' })
  await compactor.catchUp()
  // Small archives, so that every step is done several times.
  await packAll(packerOf(workspace, compactor, { store, rule: { maxSegments: 4 } }))
  await compactor.publish()
}

beforeAll(async () => {
  start = (await severalDays(3)).workspace
  events = await eventCounts(start)
  requests = []
  const counted = await start.copy()
  await leadAndPack(
    counted,
    interceptedStore(counted.store, (request) => void requests.push(request)),
  )
})

/** What is in the ledger, whatever happened to who packed it. */
async function expectWhole(workspace: Workspace, context: string): Promise<void> {
  expect(await eventCounts(workspace), context).toEqual(events)
  expect((await workspace.verify({ quick: true })).problems, context).toEqual([])
}

describe('a leader that packs', { timeout: 300_000 }, () => {
  test.each(['before', 'after'] as const)(
    '[L10][I1] and is killed at any request, %s it is carried out, loses nothing, and the next one finishes its work',
    async (when) => {
      expect(requests.filter(({ method }) => method === 'delete').length).toBeGreaterThan(8)
      const wanted = (await eventCounts(start)).size
      for (const [nth, { method, path }] of requests.entries()) {
        if (!isFaultTried()) continue
        const context = `killed ${when} request ${nth}, ${method} ${path}`
        const workspace = await start.copy()
        let count = 0
        const outcome = when === 'before' ? 'lost' : 'unanswered'
        const dying = faultyStore(workspace.store, () => {
          const at = count++
          if (at < nth) return undefined
          return { outcome: at === nth ? outcome : 'lost' }
        })
        await leadAndPack(workspace, dying).catch(() => undefined)
        await expectWhole(workspace, context)
        await leadAndPack(workspace)
        await expectWhole(workspace, context)
        const left = await workspace.paths(paths.ledger)
        expect(
          left.every((segment) => segment.startsWith(paths.day('2025-01-17'))),
          context,
        ).toBe(true)
        // What a replay gives follows from the bytes of the segments, so one in four will do.
        const report = await workspace.verify({ quick: nth % 4 > 0 })
        expect(report, context).toMatchObject({ ok: true, problems: [], unfolded: [], events: wanted })
      }
    },
  )

  test('[L10] and is stopped at any request while another one takes over, packs and goes on, does no harm', async () => {
    for (const [nth, { method, path }] of requests.entries()) {
      if (!isFaultTried()) continue
      const context = `stopped before request ${nth}, ${method} ${path}`
      const workspace = await start.copy()
      let count = 0
      const stopped = Promise.withResolvers<void>()
      const woken = Promise.withResolvers<void>()
      const slow = interceptedStore(workspace.store, async () => {
        if (count++ !== nth) return
        stopped.resolve()
        await woken.promise
      })
      const first = leadAndPack(workspace, slow).catch(() => undefined)
      await Promise.race([stopped.promise, first])
      await leadAndPack(workspace)
      const next = await workspace.compactor({ name: 'next', lease: new ScriptedLease(2) })
      await publishNext(workspace, next, reportFact(`while stopped ${nth}`))
      woken.resolve()
      await first
      const counts = await eventCounts(workspace)
      expect(
        [...events.keys()].filter((id) => counts.get(id) !== 1),
        context,
      ).toEqual([])
      expect((await workspace.verify({ quick: nth % 4 > 0 })).problems, context).toEqual([])
    }
  })
})
