import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Candidate, HeldLease, Lease } from '../../ports/lease.ts'

/** A process that takes part. Pausing it is like SIGSTOP: no timer and no watch calls it, and time goes on. */
export interface LeaseProcess {
  readonly lease: Lease
  pause(): void
  resume(): void
}

/** A lease without a claim; every test asks for one of its own. */
export interface OpenedLease {
  /** One more process that sees this lease. */
  readonly join: () => LeaseProcess
  readonly periodMs: number
  /** Lets time pass for all processes. */
  readonly pass: (ms: number) => Promise<void>
  readonly close?: () => Promise<void>
}

export type OpenLease = () => Promise<OpenedLease>

const PATIENCE_MS = 60_000

/** The law of `ports/lease.ts`, as tests. Call it from the test file of an adapter: it conforms when they pass. */
export function leaseConformance(name: string, openLease: OpenLease): void {
  describe(name, { timeout: PATIENCE_MS }, () => {
    let opened: OpenedLease
    let starts = 0

    beforeEach(async () => {
      opened = await openLease()
    }, PATIENCE_MS)

    afterEach(async () => {
      await opened.close?.()
    }, PATIENCE_MS)

    const candidate = (term: Candidate['term'] = 'standing'): Candidate => ({ name: `start-${++starts}`, term })

    /** Time passes while it works. */
    async function during<T>(work: Promise<T>): Promise<T> {
      let isOver = false
      void work
        .catch(() => undefined)
        .finally(() => {
          isOver = true
        })
      while (!isOver) await opened.pass(opened.periodMs / 20)
      return await work
    }

    async function heldBy({ lease }: LeaseProcess): Promise<HeldLease> {
      const answer = await during(lease.claim(candidate()))
      if (!answer.held) throw new Error(`held by ${answer.leader.name}`)
      return answer
    }

    it('there is no leader before the first claim', async () => {
      expect(await opened.join().lease.leader()).toBeUndefined()
    })

    it('the first claim succeeds at once, and every process sees the leader', async () => {
      const { lease } = opened.join()
      const who = candidate('brief')
      const held = (await lease.claim(who)) as HeldLease
      expect(held).toMatchObject({ held: true, isHeld: true, number: 1 })
      expect(await held.confirm()).toBe(true)
      const leader = { ...who, number: 1, address: null, pid: process.pid, host: expect.any(String) }
      expect(await lease.leader()).toEqual(leader)
      expect(await opened.join().lease.leader()).toEqual(leader)
    })

    it('what a holder keeps is there for every process and every later holder, until another text is kept', async () => {
      const first = await heldBy(opened.join())
      expect(first.kept).toBeUndefined()
      expect(await opened.join().lease.kept()).toBeUndefined()
      await first.keep('one')
      await first.keep('two')
      await first.announce('http://127.0.0.1:4400')
      expect([first.kept, await opened.join().lease.kept()]).toEqual(['two', 'two'])
      await first.release()
      const second = await heldBy(opened.join())
      expect(second.kept).toBe('two')
      await second.release()
      const third = await heldBy(opened.join())
      await third.keep('three')
      expect([third.kept, await opened.join().lease.kept()]).toEqual(['three', 'three'])
    })

    it('[E4] a holder that answers keeps the lease, and the candidate gets the leader and its address', async () => {
      const held = await heldBy(opened.join())
      await held.announce('http://127.0.0.1:4400')
      const other = opened.join()
      for (let i = 0; i < 3; i++) {
        const answer = await during(other.lease.claim(candidate()))
        expect(answer).toMatchObject({ held: false, leader: { number: 1, address: 'http://127.0.0.1:4400' } })
      }
      expect(held.isHeld).toBe(true)
    })

    it('[E3] a released lease is claimed without waiting, under a higher number', async () => {
      const held = await heldBy(opened.join())
      let losses = 0
      held.onLost(() => losses++)
      await held.release()
      expect(held.isHeld).toBe(false)
      expect(await held.confirm()).toBe(false)
      const { lease } = opened.join()
      expect(await lease.leader()).toBeUndefined()
      expect(await lease.claim(candidate())).toMatchObject({ held: true, isHeld: true, number: 2 })
      await opened.pass(opened.periodMs)
      expect(losses).toBe(0)
      // A second or late release does not release the lease of another holder.
      await held.release()
      expect(await lease.leader()).toMatchObject({ number: 2 })
    })

    it('[E1] of many candidates that claim at once one succeeds, and the others get the winner', async () => {
      for (let round = 1; round <= 5; round++) {
        const answers = await during(Promise.all(Array.from({ length: 8 }, () => opened.join().lease.claim(candidate()))))
        const winners = answers.filter((answer) => answer.held)
        expect(winners).toHaveLength(1)
        expect(winners[0]).toMatchObject({ number: round, isHeld: true })
        for (const answer of answers) if (!answer.held) expect(answer.leader.number).toBe(round)
        await winners[0]?.release()
      }
    })

    it('[E4] a holder that gives no sign for a period is replaced, not sooner, and learns it as soon as it runs again', async () => {
      const sleeper = opened.join()
      const held = await heldBy(sleeper)
      let losses = 0
      held.onLost(() => losses++)
      sleeper.pause()
      const claim = opened.join().lease.claim(candidate())
      await opened.pass(opened.periodMs * 0.7)
      expect(await opened.join().lease.leader()).toMatchObject({ number: 1 })
      const next = (await during(claim)) as HeldLease
      expect(next).toMatchObject({ held: true, isHeld: true, number: 2 })
      // This comes before any await, and before any timer or watch of the sleeper is called.
      expect(held.isHeld).toBe(false)
      expect(losses).toBe(0)
      sleeper.resume()
      expect(await held.confirm()).toBe(false)
      expect(held.isHeld).toBe(false)
      expect(losses).toBe(1)
      await opened.pass(opened.periodMs)
      expect(losses).toBe(1)
      expect(await held.confirm()).toBe(false)
      expect(next.isHeld).toBe(true)
      // Its signs do not count any more.
      await held.announce('http://127.0.0.1:1')
      await held.release()
      expect(await opened.join().lease.leader()).toMatchObject({ number: 2, address: null })
    })

    it('a holder is notified that it was replaced', async () => {
      const sleeper = opened.join()
      const held = await heldBy(sleeper)
      let losses = 0
      held.onLost(() => losses++)
      sleeper.pause()
      await heldBy(opened.join())
      sleeper.resume()
      await opened.pass(opened.periodMs)
      expect(losses).toBe(1)
      // A listener that is added late is called as well.
      held.onLost(() => losses++)
      expect(losses).toBe(2)
    })

    it('[E5] a holder that was paused and not replaced does not act until it has looked at the lease, then goes on', async () => {
      const sleeper = opened.join()
      const held = await heldBy(sleeper)
      let losses = 0
      held.onLost(() => losses++)
      sleeper.pause()
      await opened.pass(opened.periodMs * 2)
      expect(held.isHeld).toBe(false)
      expect(await held.confirm()).toBe(true)
      expect(held.isHeld).toBe(true)
      sleeper.resume()
      await opened.pass(opened.periodMs)
      expect(held.isHeld).toBe(true)
      expect(losses).toBe(0)
    })

    it('[E4] a holder that comes back before the period is over keeps the lease', async () => {
      const sleeper = opened.join()
      const held = await heldBy(sleeper)
      sleeper.pause()
      const claim = opened.join().lease.claim(candidate())
      await opened.pass(opened.periodMs * 0.4)
      sleeper.resume()
      expect(await during(claim)).toMatchObject({ held: false, leader: { number: 1 } })
      expect(await held.confirm()).toBe(true)
    })

    it('[E6] a holder without challengers stays the holder for any length of time', async () => {
      const held = await heldBy(opened.join())
      await opened.pass(opened.periodMs * 2)
      expect(held.isHeld).toBe(true)
      expect(await held.confirm()).toBe(true)
    })

    it('[E1] numbers only grow, whichever process claimed them and however its claim ended', async () => {
      const numbers: number[] = []
      for (let i = 0; i < 6; i++) {
        const one = opened.join()
        const held = await heldBy(one)
        numbers.push(held.number)
        if (i % 3 === 0) one.pause()
        else await held.release()
      }
      expect(numbers).toEqual([1, 2, 3, 4, 5, 6])
    })
  })
}
