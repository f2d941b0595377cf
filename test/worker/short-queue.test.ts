import { describe, expect, test } from 'vitest'
import type { AttemptResult } from '../../src/contract/dispatch.ts'
import type { WorkerPool, WorkerPoolOptions } from '../../src/worker/pool/pool.ts'
import { envelope } from './fake-envelope.ts'
import { fakePool, isAlive, returned } from './fake-pool.ts'

/** A pool that has seen many brief attempts end, so that the next may wait behind each other. */
async function practised(options: Partial<WorkerPoolOptions> = {}): Promise<WorkerPool> {
  const pool = fakePool({ size: 1, graceMs: 50, ...options, warm: options.size ?? 1 })
  for (let round = 0; round < 60; round++) await all(pool, 4)
  return pool
}

const all = (pool: WorkerPool, count: number) => Promise.all(Array.from({ length: count }, () => pool.run(envelope('brief'))))

const outcomes = (results: readonly AttemptResult[]) => [...new Set(results.map(({ outcome }) => outcome))]

describe('brief attempts wait in a short queue of their process', () => {
  test('two thousand on three processes all end, each with its own result, log and beginning', async () => {
    const pool = await practised({ size: 3 })
    await Promise.all(
      Array.from({ length: 2_000 }, async () => {
        const work = envelope('brief')
        const heard: string[] = []
        const { output } = await pool.run(work, {
          onStart: () => void heard.push('begun'),
          onLog: (entries) => void heard.push(...entries.map(({ text }) => text)),
        })
        expect(output?.metadata['value']).toBe(work.attempt_id)
        expect(heard).toEqual(['begun', work.attempt_id])
      }),
    )
    expect(pool.idle).toBe(3)
  })

  test.each(['exits natively', 'exits', 'is killed', 'throws later'])('one that %s fails alone', async (surprise) => {
    const pool = await practised()
    // More of them than the five moves of an attempt that its process leaves behind.
    const attempts = Array.from({ length: 8 }, () => {
      const before = all(pool, 3)
      const bad = pool.run(envelope('brief', surprise))
      return { before, bad, after: all(pool, 3) }
    })
    for (const { before, bad, after } of attempts) {
      expect(await bad).toMatchObject({ outcome: 'FAILED', error: { category: 'crashed' } })
      expect(outcomes([...(await before), ...(await after)])).toEqual(['SUCCEEDED'])
    }
  })

  test('those behind one that turns out to be long go elsewhere', async () => {
    const pool = await practised({ size: 2 })
    const head = envelope('brief', 'takes long')
    const long = pool.run(head)
    expect(outcomes(await all(pool, 12))).toEqual(['SUCCEEDED'])
    pool.cancel(head.attempt_id)
    expect((await long).outcome).toBe('CANCELLED')
  })

  test('those behind one that blocks its process go on when it ends', async () => {
    const pool = await practised()
    const long = pool.run(envelope('brief', 'blocks a while'))
    expect(outcomes([...(await all(pool, 12)), await long])).toEqual(['SUCCEEDED'])
  })

  test('those behind one that is killed at its timeout go elsewhere', async () => {
    const pool = await practised()
    const long = pool.run(envelope('brief', 'blocks for ever'), { timeoutMs: 100 })
    const others = all(pool, 5)
    expect(await long).toMatchObject({ outcome: 'FAILED', error: { category: 'timeout' } })
    expect(outcomes(await others)).toEqual(['SUCCEEDED'])
  })

  test('the time of an attempt counts from its beginning', async () => {
    const pool = await practised()
    const long = pool.run(envelope('brief', 'blocks a while'))
    expect(await pool.run(envelope('brief'), { timeoutMs: 150 })).toMatchObject({ outcome: 'SUCCEEDED' })
    expect((await long).outcome).toBe('SUCCEEDED')
  })

  test('one that waits behind another is cancelled without having begun', async () => {
    const pool = await practised()
    const head = envelope('brief', 'takes long')
    const long = pool.run(head)
    const work = envelope('brief')
    const begun: string[] = []
    const result = pool.run(work, { onStart: () => void begun.push(work.attempt_id) })
    expect(pool.cancel(work.attempt_id)).toBe(true)
    expect((await result).outcome).toBe('CANCELLED')
    expect(begun).toEqual([])
    pool.cancel(head.attempt_id)
    expect((await long).outcome).toBe('CANCELLED')
  })

  test('cancelling one that waits harms neither the one that blocks before it nor the one behind', async () => {
    const pool = await practised()
    const long = pool.run(envelope('brief', 'blocks a while'))
    const work = envelope('brief', 'takes long')
    const result = pool.run(work)
    const other = pool.run(envelope('brief'))
    pool.cancel(work.attempt_id, { graceMs: 0 })
    expect((await result).outcome).toBe('CANCELLED')
    expect(outcomes([await long, await other])).toEqual(['SUCCEEDED'])
  })

  test('closing cancels those that wait behind others, and leaves no process', async () => {
    const pool = await practised()
    const pid = await returned(pool, 'pid')
    const attempts = [
      pool.run(envelope('brief', 'blocks for ever')),
      ...Array.from({ length: 5 }, () => pool.run(envelope('brief'))),
    ]
    await pool.close({ graceMs: 50 })
    expect(outcomes(await Promise.all(attempts))).toEqual(['CANCELLED'])
    expect(isAlive(pid)).toBe(false)
  })

  test('nothing waits behind another when attempts have taken long', async () => {
    const pool = await practised({ size: 2 })
    await pool.run(envelope('brief', 'blocks a while'))
    const work = envelope('brief', 'blocks for ever')
    const long = pool.run(work)
    expect(outcomes(await all(pool, 12))).toEqual(['SUCCEEDED'])
    pool.cancel(work.attempt_id)
    expect((await long).outcome).toBe('CANCELLED')
  })
})
