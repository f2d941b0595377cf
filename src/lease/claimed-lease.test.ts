import { expect, test } from 'vitest'
import { MemoryClaims } from '../adapters/memory/lease.ts'
import { HOUR_MS, SECOND_MS } from '../lib/time.ts'
import type { HeldByAnother, HeldLease } from '../ports/lease.ts'
import { PausableProcess } from '../testing/pausable-process.ts'
import { VirtualClock } from '../testing/virtual-clock.ts'
import type { ClaimPlace } from './claim-place.ts'
import { claimedLease } from './claimed-lease.ts'

const PERIOD_MS = 10_000
const someone = { name: 'someone', term: 'standing' } as const

class Scene {
  readonly clock = new VirtualClock()
  readonly claims = new MemoryClaims()

  /** A process that sees the claims, with some of its calls changed. */
  join(changed: (place: ClaimPlace) => Partial<ClaimPlace> = () => ({})) {
    const process = new PausableProcess(this.clock)
    const place = this.claims.seenBy(process.clock)
    const lease = claimedLease({ ...place, ...changed(place) }, { clock: process.clock, periodMs: PERIOD_MS })
    return { process, claim: () => lease.claim(someone) }
  }

  async during<T>(work: Promise<T>): Promise<T> {
    let isOver = false
    void work.finally(() => {
      isOver = true
    })
    while (!isOver) await this.clock.advance(PERIOD_MS / 20)
    return await work
  }
}

test('[E1] a process that comes late with the number of a claim that was removed since has claimed nothing', async () => {
  const scene = new Scene()
  const late = scene.join((place) => ({
    async create(number, candidate) {
      if (number > 1) return await place.create(number, candidate)
      // It found nobody, and was stopped before it could create the first claim.
      for (let i = 0; i < 3; i++) {
        const held = (await scene.join().claim()) as HeldLease
        if (i < 2) await held.release()
      }
      expect(place.look(3).newest).toBe(3)
      return await place.create(number, candidate)
    },
  }))
  expect(await scene.during(late.claim())).toMatchObject({ held: false, leader: { number: 3 } })
  const place = scene.claims.seenBy(scene.clock)
  expect(place.readSign(1)).toBeUndefined()
  expect(place.newest()?.number).toBe(3)
})

/** The calls of a holder to its place, by name, during ten periods in which nobody else comes. */
async function callsOfIdleHolder(changed: Partial<ClaimPlace> = {}): Promise<Record<string, number>> {
  const scene = new Scene()
  const calls: Record<string, number> = {}
  const counted = (place: ClaimPlace): ClaimPlace =>
    new Proxy(
      { ...place, ...changed },
      {
        get(target, name, receiver) {
          calls[String(name)] = (calls[String(name)] ?? 0) + 1
          return Reflect.get(target, name, receiver)
        },
      },
    )
  const process = new PausableProcess(scene.clock)
  const lease = claimedLease(counted(scene.claims.seenBy(process.clock)), { clock: process.clock, periodMs: PERIOD_MS })
  const held = (await lease.claim(someone)) as HeldLease
  for (const name of Object.keys(calls)) delete calls[name]
  await scene.clock.advance(10 * PERIOD_MS + 1)
  expect(held.isHeld).toBe(true)
  return calls
}

test('[E6] a holder without a challenger reads and writes nothing, and asks only whether its place was moved', async () => {
  expect(await callsOfIdleHolder()).toEqual({ moved: 30 })
})

test('[E6] a holder whose place cannot be watched looks at it three times in a period', async () => {
  expect(await callsOfIdleHolder({ watch: () => undefined })).toMatchObject({ look: 30 })
})

test.each([-HOUR_MS, 0, HOUR_MS])(
  '[E4] a silent holder is replaced after ten seconds, by a clock that nobody sets (the wall clock jumps by %d ms)',
  async (jumpMs) => {
    const clock = new VirtualClock()
    const claims = new MemoryClaims()
    const silent = new PausableProcess(clock)
    await claimedLease(claims.seenBy(silent.clock), { clock: silent.clock }).claim(someone)
    silent.pause()
    const place = claims.seenBy(clock)
    const claim = claimedLease(place, { clock }).claim(someone)
    await clock.advance(SECOND_MS)
    clock.jump(jumpMs)
    await clock.advance(9 * SECOND_MS - 1)
    expect(place.newest()?.number).toBe(1)
    await clock.advance(1)
    expect(place.newest()?.number).toBe(2)
    expect(await claim).toMatchObject({ held: true, number: 2 })
  },
)

test('[E5] a holder that comes back between the last look and the claim has stopped before the challenger begins', async () => {
  const scene = new Scene()
  const sleeper = scene.join()
  const old = (await sleeper.claim()) as HeldLease
  sleeper.process.pause()
  let confirmed: boolean | undefined
  const challenger = scene.join((place) => ({
    async create(number, candidate) {
      // It answers the challenge, finds no higher claim, believes that it still leads, and is stopped again.
      confirmed = await old.confirm()
      return await place.create(number, candidate)
    },
  }))
  const next = (await scene.during(challenger.claim())) as HeldLease
  expect(confirmed).toBe(true)
  expect(next).toMatchObject({ number: 2, isHeld: true })
  expect(old.isHeld).toBe(false)
  sleeper.process.resume()
  expect(await old.confirm()).toBe(false)
})

test('[E5] at no moment do two believe that they lead, whenever they are stopped and go on', async () => {
  for (let seed = 1; seed <= 40; seed++) {
    let state = seed
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647
      return state % below
    }
    const scene = new Scene()
    const members = Array.from({ length: 3 }, () => ({
      ...scene.join(),
      held: undefined as HeldLease | undefined,
      isBusy: false,
      isPaused: false,
    }))
    const watchful = (): number => members.filter(({ held }) => held?.isHeld).length
    let terms = 0
    for (let step = 0; step < 120; step++) {
      const member = members[random(members.length)]!
      const act = random(10)
      if (act < 3) {
        member.isPaused = !member.isPaused
        if (member.isPaused) member.process.pause()
        else member.process.resume()
      } else if (!member.isPaused && act < 8 && !member.isBusy && !member.held?.isHeld) {
        member.isBusy = true
        void member.claim().then((answer: HeldLease | HeldByAnother) => {
          member.isBusy = false
          if (!answer.held) return
          member.held = answer
          terms += 1
        })
      } else if (!member.isPaused && act === 8) await member.held?.confirm()
      else if (!member.isPaused && act === 9 && random(4) === 0) await member.held?.release()
      expect(watchful(), `seed ${seed}, step ${step}`).toBeLessThanOrEqual(1)
      await scene.clock.advance(random(PERIOD_MS / 4))
      expect(watchful(), `seed ${seed}, step ${step}`).toBeLessThanOrEqual(1)
    }
    expect(terms).toBeGreaterThan(0)
  }
})
