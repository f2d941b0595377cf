import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { Loop } from '../../src/engine/loop/loop.ts'
import type { LoopOptions } from '../../src/engine/loop/loop-options.ts'
import { collectGarbage } from '../../src/engine/publish/garbage.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import type { AnyRow } from '../../src/model/table.ts'
import type { Listener, Notifier } from '../../src/ports/notifier.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { paths, scope, seededBytes, Workspace } from './workspace.ts'

/** A lease that the test takes away. */
function lease() {
  const it = {
    isHeld: true,
    isLost: false,
    confirm: async () => {
      it.isHeld = !it.isLost
      return it.isHeld
    },
    lose: () => Object.assign(it, { isHeld: false, isLost: true }),
  }
  return it
}

async function lead(clock: VirtualClock, options: Partial<LoopOptions> = {}): Promise<Loop> {
  const ulid = ulidSource(() => clock.now(), seededBytes(7))
  const given = {
    store: memoryStore(),
    scope,
    clock,
    ulid,
    registry: orchestration,
    name: 'leader',
    source: 'test',
    controllers: [],
  }
  return await Loop.open({ ...given, ...options })
}

describe('a leader that was deposed', () => {
  test('[E7] while it wrote a segment answers nobody, acts on nothing, and breaks', async () => {
    const held = lease()
    const shown: AnyRow[] = []
    const broken: unknown[] = []
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.ledger))
    const loop = await lead(new VirtualClock(), {
      store: interceptedStore(memoryStore(), gate.before),
      lease: held,
      reactors: [{ watches: runs, react: (row) => void shown.push(row) }],
      onBroken: (error) => void broken.push(error),
    })
    const submitted = loop.submit(runFacts('r').batches[0]!)
    submitted.catch(() => undefined)
    await gate.arrived
    held.lose()
    gate.open()
    await expect(submitted).rejects.toMatchObject({ kind: 'conflict', code: 'deposed' })
    expect(shown).toEqual([])
    expect(broken).toMatchObject([{ code: 'deposed' }])
  })

  test('[E7] publishes nothing and collects nothing', async () => {
    const held = lease()
    const clock = new VirtualClock()
    const store = countingStore(memoryStore())
    const loop = await lead(clock, { store, lease: held })
    await loop.submit([reportFact('a')])
    held.lose()
    store.reset()
    await expect(loop.compactor.publish()).rejects.toMatchObject({ code: 'deposed' })
    await expect(collectGarbage({ store, scope, registry: orchestration, clock, lease: held })).rejects.toMatchObject({
      code: 'deposed',
    })
    expect(store.count('create', 'put', 'delete')).toBe(0)
  })

  test('and only was paused goes on as soon as it knows that it still leads', async () => {
    const held = lease()
    const loop = await lead(new VirtualClock(), { lease: held })
    held.isHeld = false
    await loop.submit([reportFact('a')])
    expect(await loop.compactor.publish()).toBe('published')
  })
})

describe('a leader claims its epoch when it opens', () => {
  test('[E7][S4] so that the one before publishes nothing any more', async () => {
    const clock = new VirtualClock()
    const store = memoryStore()
    const before = await lead(clock, { store, lease: lease() })
    await before.submit([reportFact('a')])
    await lead(clock, { store, lease: lease(), name: 'next' })
    await expect(before.compactor.publish()).rejects.toMatchObject({ code: 'fenced' })
  })

  test('after the one before, should that publish at the last moment', async () => {
    const clock = new VirtualClock()
    const store = memoryStore()
    const before = await lead(clock, { store, lease: lease() })
    await before.submit([reportFact('a')])
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.manifests))
    const opening = lead(clock, { store: interceptedStore(store, gate.before), lease: lease(), name: 'next' })
    await gate.arrived
    await before.compactor.publish()
    gate.open()
    const next = await opening
    expect(next.compactor.manifest).toMatchObject({ epoch: 2, publish: 1, compactor: 'next' })
    await expect(before.submit([reportFact('b')]).then(() => before.compactor.publish())).rejects.toMatchObject({
      code: 'fenced',
    })
  })
})

describe('what another process writes', () => {
  function notifier(missesNothing: boolean) {
    const listeners: Listener[] = []
    const announced: string[] = []
    const it: Notifier = {
      announce: (segment) => void announced.push(segment),
      listen: async (listener) => {
        listeners.push(listener)
        return { missesNothing, close: () => undefined }
      },
    }
    return { it, listeners, announced }
  }

  test('is folded as soon as it is heard of, and what is heard of again costs nothing', async () => {
    const clock = new VirtualClock()
    const store = countingStore(memoryStore())
    const { it, listeners, announced } = notifier(true)
    const loop = await lead(clock, { store, notifier: it })
    const { segment } = await new Workspace(store, undefined, 5).append(...runFacts('theirs').batches[0]!)
    store.reset()
    listeners[0]!.onSegments([segment])
    await clock.advance(0)
    expect(loop.compactor.state.hot(runs).get(runFacts('theirs').runId)).toBeDefined()
    expect(store.requests).toMatchObject([{ method: 'get' }])
    await loop.submit([reportFact('ours')])
    store.reset()
    listeners[0]!.onSegments([segment, announced[0]!])
    await clock.advance(60_000)
    expect(announced).toHaveLength(1)
    expect(store.requests).toEqual([])
  })

  test('[O7][V3] is found by looking where not everything is heard of, and at once when something was missed', async () => {
    const clock = new VirtualClock()
    const store = memoryStore()
    const { it, listeners } = notifier(false)
    const loop = await lead(clock, { store, notifier: it, lookEveryMs: 5_000 })
    const others = new Workspace(store, undefined, 5)
    await others.append(...runFacts('unheard').batches[0]!)
    await clock.advance(5_001)
    expect(loop.compactor.state.hot(runs).get(runFacts('unheard').runId)).toBeDefined()
    await others.append(...runFacts('missed').batches[0]!)
    listeners[0]!.onMissed()
    await clock.advance(0)
    expect(loop.compactor.state.hot(runs).get(runFacts('missed').runId)).toBeDefined()
    await loop.close()
  })
})
