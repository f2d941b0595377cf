import { describe, expect, it } from 'vitest'
import { memoryStore } from '../adapters/memory/object-store.ts'
import { objectStoreConformance } from './conformance/object-store.ts'
import { faultyStore, scriptedFaults, seededFaults } from './faulty-store.ts'

objectStoreConformance('a faulty store without faults', async () => ({ store: faultyStore(memoryStore(), () => undefined) }))

const bytes = new Uint8Array([1, 2, 3])
const injected = { kind: 'unavailable', code: 'injected_fault' }

describe('a faulty store', () => {
  it('loses a request before its effect', async () => {
    const inner = memoryStore()
    const store = faultyStore(inner, scriptedFaults([{ method: 'create', outcome: 'lost' }]))
    await expect(store.create('a', bytes)).rejects.toMatchObject(injected)
    expect(await inner.get('a')).toBeUndefined()
    expect(await store.create('a', bytes)).toBe('written')
  })

  it('loses an answer after the effect, so that the outcome is unknown', async () => {
    const inner = memoryStore()
    const steps = (['create', 'put', 'delete', 'get'] as const).map((method) => ({ method, outcome: 'unanswered' }) as const)
    const store = faultyStore(inner, scriptedFaults(steps))
    await expect(store.create('a', bytes)).rejects.toMatchObject(injected)
    expect(await inner.get('a')).toEqual(bytes)
    expect(await store.create('a', bytes)).toBe('exists')
    await expect(store.put('b', bytes)).rejects.toMatchObject(injected)
    expect(await inner.get('b')).toEqual(bytes)
    await expect(store.get('b')).rejects.toMatchObject(injected)
    await expect(store.delete('b')).rejects.toMatchObject(injected)
    expect(await inner.get('b')).toBeUndefined()
  })

  it('answers exists to a create of its own that a client library repeated', async () => {
    const inner = memoryStore()
    const store = faultyStore(inner, scriptedFaults([{ method: 'create', outcome: 'repeated' }]))
    expect(await store.create('a', bytes)).toBe('exists')
    expect(await inner.get('a')).toEqual(bytes)
  })

  it('breaks off a listing after its first object, or before it', async () => {
    const inner = memoryStore()
    for (const path of ['a', 'b', 'c']) await inner.create(path, bytes)
    const plan = scriptedFaults([
      { method: 'list', outcome: 'unanswered' },
      { method: 'list', nth: 2, outcome: 'lost' },
    ])
    const store = faultyStore(inner, plan)
    const seen: string[] = []
    const list = async () => {
      for await (const { path } of store.list('')) seen.push(path)
    }
    await expect(list()).rejects.toMatchObject(injected)
    expect(seen).toEqual(['a'])
    await expect(list()).rejects.toMatchObject(injected)
    expect(seen).toEqual(['a'])
    await list()
    expect(seen).toEqual(['a', 'a', 'b', 'c'])
  })

  it('keeps to its script: the nth request that fits, once', async () => {
    const store = faultyStore(memoryStore(), scriptedFaults([{ method: 'put', path: 'ledger/', nth: 2, outcome: 'lost' }]))
    await store.put('ledger/1', bytes)
    await store.put('state/1', bytes)
    await store.get('ledger/1')
    await expect(store.put('ledger/2', bytes)).rejects.toMatchObject(injected)
    await store.put('ledger/2', bytes)
  })

  it('delays the request before its effect and the answer after it, in the time it is given', async () => {
    const inner = memoryStore()
    const slept: [ms: number, there: boolean][] = []
    const sleep = async (ms: number) => {
      slept.push([ms, (await inner.get('a')) !== undefined])
    }
    const store = faultyStore(inner, scriptedFaults([{ method: 'create', delayMs: 5, answerDelayMs: 7 }]), sleep)
    await store.create('a', bytes)
    expect(slept).toEqual([
      [5, false],
      [7, true],
    ])
  })

  it('says that it has no clock when a plan needs one', async () => {
    const store = faultyStore(memoryStore(), () => ({ delayMs: 1 }))
    await expect(store.get('a')).rejects.toMatchObject({ kind: 'bug', code: 'no_clock' })
  })

  it('throws the same dice for the same seed, about as often as asked', () => {
    const chances = { lost: 0.1, unanswered: 0.2, repeated: 0.05, delayed: 0.3, maxDelayMs: 50 }
    const throws = (seed: number) => {
      const plan = seededFaults(seed, chances)
      return Array.from({ length: 10_000 }, () => plan({ method: 'create', path: 'a' })!)
    }
    expect(throws(7)).toEqual(throws(7))
    expect(throws(7)).not.toEqual(throws(8))
    const share = (fits: (fault: ReturnType<typeof throws>[number]) => boolean) => throws(7).filter(fits).length / 10_000
    expect(share((fault) => fault.outcome === 'lost')).toBeCloseTo(0.1, 1)
    expect(share((fault) => fault.outcome === 'unanswered')).toBeCloseTo(0.2, 1)
    expect(share((fault) => fault.outcome === 'repeated')).toBeCloseTo(0.05, 1)
    expect(share((fault) => fault.delayMs !== undefined)).toBeCloseTo(0.3, 1)
    for (const { delayMs = 1 } of throws(7)) expect(delayMs >= 1 && delayMs <= 50).toBe(true)
  })
})
