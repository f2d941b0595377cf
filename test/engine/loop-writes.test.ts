import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { decodeSegment } from '../../src/engine/ledger/segment.ts'
import { REMINT_AFTER_MS } from '../../src/engine/ledger/segment-writer.ts'
import { Loop } from '../../src/engine/loop/loop.ts'
import type { LoopOptions } from '../../src/engine/loop/loop-options.ts'
import { segmentUlid } from '../../src/engine/paths.ts'
import { ServoError } from '../../src/lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { ulidSource, ulidTime } from '../../src/lib/ulid.ts'
import type { Controller } from '../../src/model/controller.ts'
import type { NewEvent } from '../../src/model/event.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { faultyStore, scriptedFaults } from '../../src/testing/faulty-store.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, scope, seededBytes } from './workspace.ts'

type Asked = Partial<Pick<LoopOptions, 'controllers' | 'reactors' | 'onBroken'>>

async function openLoop(store: ObjectStore, clock: VirtualClock, asked: Asked = {}): Promise<Loop> {
  const ulid = ulidSource(() => clock.now(), seededBytes(7))
  const options = { store, scope, clock, ulid, registry: orchestration, name: 'test', source: 'test', controllers: [] }
  return await Loop.open({ ...options, ...asked })
}

async function segments(store: ObjectStore): Promise<string[]> {
  const found: string[] = []
  for await (const { path } of store.list(paths.ledger)) found.push(segmentUlid(path)!)
  return found
}

async function expectSound(store: ObjectStore, loop: Loop): Promise<void> {
  await loop.compactor.publish()
  const report = await verify({ store, scope, registry: orchestration, scratch: memoryStore() })
  expect(report).toMatchObject({ ok: true, problems: [], unfolded: [] })
}

test('[L5] the loop writes no name older than a minute, and its tables name the segment that is there', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  const plan = scriptedFaults([{ method: 'create', path: paths.ledger, delayMs: 6 * MINUTE_MS, outcome: 'lost' }])
  const loop = await openLoop(
    faultyStore(store, plan, (ms) => clock.sleep(ms)),
    clock,
  )
  const submitted = loop.submit([reportFact('a')])
  await clock.advance(7 * MINUTE_MS)
  await submitted
  const [name, ...others] = await segments(store)
  expect(others).toEqual([])
  expect(clock.now() - MINUTE_MS - ulidTime(name!)).toBeLessThan(REMINT_AFTER_MS)
  await expectSound(store, loop)
})

test('[L5] a first try that got through unheard is the segment: it is there once', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  const plan = scriptedFaults([{ method: 'create', path: paths.ledger, answerDelayMs: 2 * MINUTE_MS, outcome: 'unanswered' }])
  const loop = await openLoop(
    faultyStore(store, plan, (ms) => clock.sleep(ms)),
    clock,
  )
  const submitted = loop.submit([reportFact('a')])
  await clock.advance(3 * MINUTE_MS)
  await submitted
  expect(await segments(store)).toHaveLength(1)
  expect(await loop.catchUp()).toBe(0)
  await expectSound(store, loop)
})

test('[L1][L5][I1] a name that another segment has is left alone; the other is folded, and so is ours', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  // The first id of the other is the second of ours: that of the segment.
  const ids = ulidSource(() => clock.now(), seededBytes(7))
  ids()
  const other = await openLoop(store, clock)
  const loop = await openLoop(store, clock)
  await Promise.all([other.submit([reportFact('b')]), loop.submit([reportFact('a')])])
  expect(await segments(store)).toHaveLength(2)
  expect(await loop.catchUp()).toBe(1)
  await expectSound(store, loop)
})

test('[L4] facts that are submitted together are one segment, also when there is no room for them in the open one', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  const loop = await openLoop(store, clock)
  // Two of these do not fit into the 32 MiB of a segment.
  const facts = (name: string) =>
    Array.from({ length: 18 }, (_, i): NewEvent => {
      const { definition, payload } = reportFact(`${name}${i}`)
      return { definition, payload: { ...(payload as object), metadata: { text: 'x'.repeat(1_000_000) } } }
    })
  await Promise.all([loop.submit(facts('a')), loop.submit(facts('b'))])
  const written = await Promise.all(
    (await segments(store)).map(async (ulid) => {
      const path = paths.segment(ulid)
      return decodeSegment((await store.get(path))!, path, scope).map(({ payload }) => String(payload['report_id'])[0])
    }),
  )
  expect(written).toEqual([Array(18).fill('a'), Array(18).fill('b')])
})

test('what the store refuses for good is not tried again: it breaks the loop at once', async () => {
  const clock = new VirtualClock()
  const broken: unknown[] = []
  const refusing = interceptedStore(memoryStore(), ({ method }) => {
    if (method === 'create') throw new ServoError('invalid', 'two_filesystems', 'cannot be linked')
  })
  const counting = countingStore(refusing)
  const loop = await openLoop(counting, clock, { onBroken: (error) => broken.push(error) })
  await expect(loop.submit([reportFact('a')])).rejects.toMatchObject({ code: 'two_filesystems' })
  expect(counting.count('create')).toBe(1)
  expect(broken).toMatchObject([{ code: 'two_filesystems' }])
})

test('a publish that begins while a segment has no name yet waits for it', async () => {
  const clock = new VirtualClock()
  const store = memoryStore()
  const slow = interceptedStore(store, ({ path }) => (path.startsWith(paths.ledger) ? clock.sleep(SECOND_MS) : undefined))
  const opening = openLoop(slow, clock)
  await clock.advance(MINUTE_MS)
  const loop = await opening
  const submitted = [loop.submit([reportFact('a')])]
  await clock.advance(1)
  // Enough to be folded while the first is being written.
  submitted.push(...['b', 'c', 'd', 'e'].map((id) => loop.submit([reportFact(id)])))
  await clock.advance(1)
  const published = loop.compactor.publish()
  await clock.advance(10 * SECOND_MS)
  await Promise.all([...submitted, published])
  expect(loop.compactor.manifest.watermarks.segments).toBe(2)
  await expectSound(store, loop)
})

test.each([
  [499, [500]],
  [500, [500, 1]],
])('[O1] what follows from %i decisions at once is in segments of %j', async (count, expected) => {
  const clock = new VirtualClock()
  const store = countingStore(memoryStore())
  const rounds = [Array.from({ length: count }, (_, i) => reportFact(`r${i}`)), [reportFact('after')]]
  /** How many segments were written when the controller was asked. */
  const written: number[] = []
  const controller = {
    ...{ name: 'rounds', doc: 'Decides what it was given, round by round.', watches: [], observe: () => undefined },
    decide: () => {
      written.push(store.requests.length)
      return rounds.shift() ?? []
    },
  }
  const loop = await openLoop(store, clock, { controllers: [controller] })
  store.reset()
  loop.nudge()
  await loop.idle()
  const sizes: number[] = []
  for (const name of await segments(store)) {
    const bytes = await store.get(paths.segment(name))
    sizes.push(decodeSegment(bytes!, paths.segment(name), scope).length)
  }
  expect(sizes).toEqual(expected)
  expect(written).toEqual(expected.length === 1 ? [0, 0, 0] : [0, 1, 1])
  await expectSound(store, loop)
})

test('what follows from many decisions is decided, also if their segment was closed while they were folded', async () => {
  const store = memoryStore()
  let rounds = 0
  const many: Controller = {
    name: 'many',
    doc: 'Decides much, and once that is folded a little more.',
    watches: [],
    observe: () => {},
    decide: () => {
      rounds += 1
      // Somebody waits for what is folded so far; the fold waits for cold rows.
      if (rounds === 1) queueMicrotask(() => loop.closeSegment())
      if (rounds === 1) return Array.from({ length: 600 }, (_, n) => reportFact(`many-${n}`))
      return rounds === 2 ? [reportFact('what follows')] : []
    },
    wakeAt: () => undefined,
  }
  const loop = await openLoop(store, new VirtualClock(), { controllers: [many] })
  loop.nudge()
  await loop.idle()
  expect(rounds).toBeGreaterThan(1)
  await expectSound(store, loop)
  expect(loop.compactor.manifest.watermarks.events).toBe(601)
})
