import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import type { Appended } from '../../src/engine/ledger/ledger.ts'
import { decodeSegment, type Segment } from '../../src/engine/ledger/segment.ts'
import { REMINT_AFTER_MS } from '../../src/engine/ledger/segment-writer.ts'
import { ServoError } from '../../src/lib/error.ts'
import { MINUTE_MS } from '../../src/lib/time.ts'
import { ulidSource, ulidTime } from '../../src/lib/ulid.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { type FaultPlan, faultyStore, scriptedFaults } from '../../src/testing/faulty-store.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, scope, Workspace } from './workspace.ts'

/** The next turn of the event loop: what a real store takes at least. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function segmentsOf(workspace: Workspace): Promise<Segment[]> {
  const names = await workspace.paths(paths.ledger)
  return await Promise.all(
    names.map(async (path) => ({
      ulid: path.slice(-31, -5),
      events: decodeSegment((await workspace.store.get(path))!, path, scope),
    })),
  )
}

const reportsIn = ({ events }: Segment): string[] => events.map((event) => event.payload['report_id'] as string)

describe('group commit', () => {
  test('[L4] 500 concurrent appends become two segments, and one write is in flight at a time', async () => {
    const workspace = new Workspace()
    const counting = countingStore(workspace.store)
    let inFlight = 0
    let most = 0
    const slow = interceptedStore(counting, async ({ method }) => {
      if (method !== 'create') return
      inFlight += 1
      most = Math.max(most, inFlight)
      await turn()
      inFlight -= 1
    })
    const ledger = workspace.ledger({ store: slow })
    const appended = await Promise.all(Array.from({ length: 500 }, (_, i) => ledger.append([reportFact(`r${i}`)])))
    // The first goes out at once, alone; the others find it under way.
    expect(counting.count('create')).toBe(2)
    expect(counting.count('list'), 'which days are closed: before the first, and after each').toBe(3)
    expect(counting.count()).toBe(5)
    expect(most).toBe(1)
    expect(new Set(appended.flatMap(({ events }) => events.map((event) => event.event_id))).size).toBe(500)
    expect(await workspace.eventCounts()).toEqual(new Map(appended.map(({ events }) => [events[0]!.event_id, 1])))
  })

  test('an append on an idle ledger is a write, and a look whether its day was closed meanwhile', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    await workspace.append(reportFact('a'))
    await workspace.append(reportFact('b'))
    expect(counting.requests.map(({ method }) => method)).toEqual(['list', 'create', 'list', 'create', 'list'])
    counting.reset()
    workspace.clock.pass(MINUTE_MS)
    await workspace.append(reportFact('c'))
    expect(counting.requests.map(({ method }) => method)).toEqual(['list', 'create', 'list'])
  })

  test('what one writer appends stays in its order, within a segment and from one to the next', async () => {
    const workspace = new Workspace()
    const ledger = workspace.ledger({ store: interceptedStore(workspace.store, turn) })
    const write = async (writer: number): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        // Every third time it does not wait, so that two of its own are in one segment.
        const appending = ledger.append([reportFact(`${writer}:${i}`)])
        if (i % 3 !== 0) await appending
      }
      await ledger.flush()
    }
    await Promise.all([0, 1, 2, 3, 4].map(write))
    const segments = await segmentsOf(workspace)
    const all = segments.flatMap(reportsIn)
    for (const writer of [0, 1, 2, 3, 4]) {
      expect(all.filter((id) => id.startsWith(`${writer}:`))).toEqual(Array.from({ length: 20 }, (_, i) => `${writer}:${i}`))
    }
    const ids = segments.flatMap((segment) => segment.events.map((event) => event.event_id))
    expect(ids.toSorted()).toEqual(ids)
    expect(segments.length).toBeLessThan(60)
  })

  test('[L4] a batch is never split: it is whole in one segment, however full that is', async () => {
    const workspace = new Workspace()
    const ledger = workspace.ledger({
      store: interceptedStore(workspace.store, turn),
      limits: { maxSegmentBytes: 4_000 },
    })
    const sizes = [1, 5, 3, 7, 2, 6, 4, 1, 7, 7]
    const batches = sizes.map((size, batch) => Array.from({ length: size }, (_, i) => reportFact(`${batch}:${i}`)))
    await Promise.all(batches.map((batch) => ledger.append(batch)))
    const segments = await segmentsOf(workspace)
    expect(segments.length).toBeGreaterThan(4)
    expect(segments.length).toBeLessThan(10)
    for (const [batch, size] of sizes.entries()) {
      const holding = segments.filter((segment) => reportsIn(segment).some((id) => id.startsWith(`${batch}:`)))
      expect(holding).toHaveLength(1)
      expect(reportsIn(holding[0]!).filter((id) => id.startsWith(`${batch}:`))).toHaveLength(size)
    }
  })
})

describe('a write with an unknown outcome', () => {
  async function appendThrough(plan: FaultPlan): Promise<{ workspace: Workspace; appended: Appended; announced: string[] }> {
    const workspace = new Workspace()
    const announced: string[] = []
    const store = faultyStore(workspace.store, plan, (ms) => workspace.clock.sleep(ms))
    const ledger = workspace.ledger({ store, onDurable: (segment) => announced.push(segment.ulid) })
    return { workspace, appended: await ledger.append([reportFact('a'), reportFact('b')]), announced }
  }

  test.each([
    ['whose answer was lost', scriptedFaults([{ method: 'create', outcome: 'unanswered' }])],
    ['that a client library sent twice', scriptedFaults([{ method: 'create', outcome: 'repeated' }])],
    ['that never arrived', scriptedFaults([{ method: 'create', outcome: 'lost' }])],
    [
      'whose answer was lost, as was that to the question whether it is there',
      scriptedFaults([
        { method: 'create', outcome: 'unanswered' },
        { method: 'get', outcome: 'lost' },
      ]),
    ],
  ])('[L5][I1] %s is acknowledged once, announced once and there once', async (_, plan) => {
    const { workspace, appended, announced } = await appendThrough(plan)
    expect(announced).toEqual([appended.segment])
    expect(await workspace.paths(paths.ledger)).toEqual([paths.segment(appended.segment)])
    expect(await workspace.eventCounts()).toEqual(new Map(appended.events.map((event) => [event.event_id, 1])))
  })

  test('[L5] gets a new name after a minute: no name older than that is written', async () => {
    const plan = scriptedFaults([{ method: 'create', delayMs: MINUTE_MS + 1, outcome: 'lost' }])
    const { workspace, appended } = await appendThrough(plan)
    expect(await workspace.paths(paths.ledger)).toEqual([paths.segment(appended.segment)])
    expect(workspace.clock.now() - ulidTime(appended.segment)).toBeLessThan(REMINT_AFTER_MS)
    expect(appended.segment > appended.events.at(-1)!.event_id).toBe(true)
  })

  test('[L5][I1] keeps its old name when the first try turns out to have succeeded a minute ago, so it is there once', async () => {
    const plan = scriptedFaults([{ method: 'create', answerDelayMs: MINUTE_MS + 1, outcome: 'unanswered' }])
    const { workspace, appended } = await appendThrough(plan)
    expect(await workspace.paths(paths.ledger)).toEqual([paths.segment(appended.segment)])
    expect([...(await workspace.eventCounts()).values()]).toEqual([1, 1])
  })

  test('[L1][L5][I1] finds its name taken by other bytes: it takes another name and leaves those alone', async () => {
    const workspace = new Workspace()
    const ids = ulidSource(() => workspace.clock.now(), seededBytes(7))
    const same = ulidSource(() => workspace.clock.now(), seededBytes(7))
    // The first id goes to the event, the second would name the segment.
    same()
    const taken = paths.segment(same())
    const other = new TextEncoder().encode('{"events":[],"sha256":"somebody else"}')
    await workspace.store.create(taken, other)
    const appended = await workspace.ledger({ ulid: ids }).append([reportFact('a')])
    expect(paths.segment(appended.segment)).not.toBe(taken)
    expect(await workspace.store.get(taken)).toEqual(new Uint8Array(other))
    expect(await workspace.store.get(paths.segment(appended.segment))).toBeDefined()
  })
})

describe('an outage', () => {
  test('longer than the attempts rejects the append with the error of the store; later appends work', async () => {
    const workspace = new Workspace()
    let down = true
    const counting = countingStore(workspace.store)
    const store = faultyStore(counting, () => (down ? { outcome: 'lost' } : undefined))
    const ledger = workspace.ledger({ store, limits: { maxAttempts: 3 } })
    const refused = await ledger.append([reportFact('lost')]).catch((error: unknown) => error)
    expect(refused).toMatchObject({ kind: 'unavailable', code: 'injected_fault' })
    down = false
    const appended = await ledger.append([reportFact('kept')])
    expect([...(await workspace.eventCounts()).keys()]).toEqual(appended.events.map((event) => event.event_id))
    expect(counting.count('create')).toBe(1)
  })

  test('of the manifests is waited for as well: without them nobody knows which days are open', async () => {
    const workspace = new Workspace()
    const store = faultyStore(workspace.store, scriptedFaults([1, 2].map((nth) => ({ method: 'list', nth, outcome: 'lost' }))))
    const { events } = await workspace.ledger({ store }).append([reportFact('a')])
    expect(await workspace.eventCounts()).toEqual(new Map([[events[0]!.event_id, 1]]))
  })

  test('that ends between two attempts is not noticed, also by those who came meanwhile', async () => {
    const workspace = new Workspace()
    const store = faultyStore(
      workspace.store,
      scriptedFaults([1, 2, 3].map((nth) => ({ method: 'create', nth, outcome: 'lost' }))),
    )
    const ledger = workspace.ledger({ store })
    const appended = await Promise.all(['a', 'b', 'c'].map((id) => ledger.append([reportFact(id)])))
    expect((await workspace.eventCounts()).size).toBe(3)
    expect(new Set(appended.map(({ segment }) => segment)).size).toBe(2)
  })

  test('of one batch does not fail the next: each is acknowledged for itself', async () => {
    const workspace = new Workspace()
    const store = faultyStore(
      workspace.store,
      scriptedFaults([1, 2].map((nth) => ({ method: 'create', nth, outcome: 'lost' }))),
    )
    const ledger = workspace.ledger({ store, limits: { maxAttempts: 2 } })
    const [first, second] = await Promise.allSettled([ledger.append([reportFact('a')]), ledger.append([reportFact('b')])])
    expect(first.status).toBe('rejected')
    expect(second.status).toBe('fulfilled')
    expect((await segmentsOf(workspace)).map(reportsIn)).toEqual([['b']])
  })

  test('is all that is tried again: what the store refuses for good is refused at once', async () => {
    const workspace = new Workspace()
    const counting = countingStore(
      interceptedStore(workspace.store, ({ method }) => {
        if (method === 'create') throw new ServoError('invalid', 'two_filesystems', 'cannot be linked')
      }),
    )
    await expect(workspace.ledger({ store: counting }).append([reportFact('a')])).rejects.toMatchObject({
      code: 'two_filesystems',
    })
    expect(counting.count('create')).toBe(1)
  })
})

describe('a listener', () => {
  test('[L3] is told of a segment when it is durable and before its appends are acknowledged', async () => {
    const workspace = new Workspace()
    const story: string[] = []
    const store = interceptedStore(workspace.store, ({ method }) => void (method === 'create' && story.push('write')))
    const ledger = workspace.ledger({ store, onDurable: () => story.push('told') })
    await ledger.append([reportFact('a')])
    story.push('acknowledged')
    expect(story).toEqual(['write', 'told', 'acknowledged'])
  })

  test('and fails, changes nothing: what is durable is acknowledged', async () => {
    const workspace = new Workspace()
    const ledger = workspace.ledger({
      onDurable: () => {
        throw new Error('the listener is broken')
      },
    })
    const { events } = await ledger.append([reportFact('a')])
    expect(await workspace.eventCounts()).toEqual(new Map([[events[0]!.event_id, 1]]))
  })
})
