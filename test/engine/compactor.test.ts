import { describe, expect, test } from 'vitest'
import { orchestration } from '../../src/domain/index.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import type { Segment } from '../../src/engine/ledger/segment.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { isServoError } from '../../src/lib/error.ts'
import { applied, type EventDefinition, type Registry } from '../../src/model/event.ts'
import { parkedEvents } from '../../src/model/system-tables.ts'
import { reportFact, runFacts, tickFact, wipeFact } from '../../src/testing/facts.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, Workspace } from './workspace.ts'

/** The domain with one of its events replaced. */
function withEvent(type: string, change: Partial<EventDefinition>): Registry {
  return {
    ...orchestration,
    events: orchestration.events.map((event) => (event.type === type ? { ...event, ...change } : event)),
  }
}
const without = (type: string): Registry => ({
  ...orchestration,
  events: orchestration.events.filter((event) => event.type !== type),
})

async function expectSound(workspace: Workspace): Promise<void> {
  const report = await workspace.verify()
  expect(report.problems).toEqual([])
  expect(report).toMatchObject({ ok: true, unfolded: [], relaid: [] })
}

describe('a compactor that meets a bug', () => {
  test('[L1] in a fold publishes nothing of the half-folded segment; opened without the bug, it folds it whole', async () => {
    const workspace = new Workspace()
    const registry = withEvent('PartitionWiped', {
      fold: () => {
        throw new Error('a bug')
      },
    })
    const broken = await workspace.compactor({ registry })
    await workspace.append(reportFact('good'))
    await broken.catchUp()
    await workspace.append(reportFact('half'), wipeFact('poison'), reportFact('never reached'))
    const failure = await broken.catchUp().catch((error: unknown) => error)
    expect(failure).toMatchObject({ kind: 'bug', code: 'fold_failed', message: expect.stringContaining('PartitionWiped') })
    await expect(broken.publish()).rejects.toBe(failure)
    expect(await workspace.paths(paths.state)).toEqual([])

    const mended = await workspace.compactor({ name: 'mended' })
    expect(await mended.catchUp()).toBe(2)
    await mended.publish()
    await expectSound(workspace)
  })

  test.each(['delta', 'base'] as const)(
    '[S8] in a row that cannot be stored gives up the %s whole, and the ledger has everything',
    async (kind) => {
      const workspace = new Workspace()
      const registry = withEvent('PartitionWiped', {
        fold({ event, rows }) {
          rows
            .cold(partitionStatus)
            .merge({ asset_key: 'raw', partition_key: 'p', wiped_at: Number.NaN, row_version: event.event_id })
          return applied
        },
      })
      const broken = await workspace.compactor({ registry })
      await workspace.append(reportFact('a'), wipeFact('b', { partition: 'p' }))
      await broken.catchUp()
      const failure = await broken.publish({ kind }).catch((error: unknown) => error)
      expect(failure).toMatchObject({ code: 'publish_failed', message: expect.stringContaining(kind) })
      await expect(broken.publish()).rejects.toBe(failure)

      const mended = await workspace.compactor({ name: 'mended' })
      await mended.catchUp()
      await mended.publish({ kind })
      expect(mended.manifest.watermarks.segments).toBe(1)
      await expectSound(workspace)
    },
  )
})

test('[F7] an event of a type that this version does not know is parked, and folded by the version that does', async () => {
  const workspace = new Workspace()
  const older = await workspace.compactor({ registry: without('MaterializationReported') })
  await workspace.append(reportFact('from the future'), wipeFact('known'))
  await older.catchUp()
  await older.publish({ kind: 'base' })
  expect([...older.state.hot(parkedEvents).all()]).toMatchObject([
    { event_type: 'MaterializationReported', reason: 'unknown_type' },
  ])

  const newer = await workspace.compactor({ name: 'newer' })
  expect([...newer.state.hot(parkedEvents).all()]).toEqual([])
  await newer.publish({ kind: 'base' })
  const view = await workspace.view()
  expect(await view.lookup(partitionStatus, 'raw', 'from the future')).toBeDefined()
  expect(view.state.hotTable(parkedEvents).size).toBe(0)
})

describe('everything at once in one process', () => {
  /** Every request takes its time, a different one each, so that whatever can overtake something does. */
  function jostling(workspace: Workspace, seed: number) {
    const bytes = seededBytes(seed)
    return interceptedStore(workspace.store, async () => {
      for (let turns = bytes(1)[0]! % 5; turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
    })
  }

  test.each([1, 2, 3, 4])(
    '[I1][I2] appends, announcements, listings, deltas, bases and collections that overlap lose nothing (seed %i)',
    async (seed) => {
      const workspace = new Workspace()
      const store = jostling(workspace, seed)
      const announced: Segment[] = []
      const ledger = workspace.ledger({ store, onDurable: (segment) => announced.push(segment) })
      const compactor: Compactor = await workspace.compactor({ store, limits: { max_count: 3 } })
      let writing = true
      const write = async (writer: number): Promise<void> => {
        for (let i = 0; i < 6; i++) {
          workspace.clock.pass(1)
          const shared = { partition: `p${i % 2}` }
          for (const batch of runFacts(`${writer}-${i}`, { tasks: 1 }).batches) await ledger.append([...batch])
          await ledger.append([reportFact(`${writer}-${i}`, shared), tickFact(`s${writer}`, workspace.clock.now())])
          await ledger.append([wipeFact(`${writer}-${i}`, shared)])
        }
      }
      const until = async (work: () => Promise<unknown>): Promise<void> => {
        while (writing) {
          await work()
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const rest = Promise.all([
        until(() => compactor.catchUp()),
        until(() => compactor.fold.apply(announced.splice(0, 3))),
        until(() => compactor.publish()),
        until(() => compactor.publish()),
        until(() => workspace.collect(0, store)),
      ])
      await Promise.all([0, 1, 2].map(write))
      writing = false
      await rest
      await compactor.catchUp()
      await compactor.publish()
      expect(compactor.manifest.watermarks.segments).toBe((await workspace.paths(paths.ledger)).length)
      await expectSound(workspace)
    },
  )

  test('publishes that are asked for at the same time are made one after the other, each whole', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ store: jostling(workspace, 5) })
    await workspace.append(reportFact('a'))
    await compactor.catchUp()
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => compactor.publish()))
    expect(outcomes.sort()).toEqual(['nothing', 'nothing', 'nothing', 'nothing', 'published'])
    await expectSound(workspace)
  })
})

test('an outage while the state is opened is an error of the process that opens it, and of no other', async () => {
  const workspace = new Workspace()
  const compactor = await workspace.compactor()
  for (const batch of runFacts('r').batches) {
    await workspace.append(...batch)
    await compactor.catchUp()
    await compactor.publish({ kind: compactor.manifest.publish === 2 ? 'base' : 'delta' })
  }
  // Everything after the manifest fails, at once and side by side: no rejection may be left over that nobody awaits.
  const store = interceptedStore(workspace.store, ({ path }) => {
    if (path.startsWith(paths.state)) throw new Error('away')
  })
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    for (const opening of [workspace.compactor({ store }), workspace.view(store)]) {
      const error = await opening.catch((error: unknown) => error)
      expect(isServoError(error)).toBe(false)
      expect(String(error)).toContain('away')
    }
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', note)
  }
  expect(unhandled).toEqual([])
})
