import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import type { Envelope } from '../../src/model/envelope.ts'
import { Bench, foldAll } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'
import { legalPermutation, mayBeReminted, moves, withCopies } from '../../src/testing/histories/order.ts'

const cuts = fc.array(fc.tuple(fc.nat({ max: 999 }), fc.constantFrom('batch', 'seal', 'restart', 'seal and restart')), {
  maxLength: 30,
})

/** Folds batch by batch, with what a base publish and a new process do to memory in between. */
function foldInPieces(events: readonly Envelope[], wanted: readonly (readonly [number, string])[]): Bench {
  const bench = new Bench()
  const places = wanted
    .map(([at, kind]) => ({ at: Math.floor((at * events.length) / 1_000), kind }))
    .sort((a, b) => a.at - b.at)
  let from = 0
  for (const { at, kind } of places) {
    bench.fold(events.slice(from, at))
    from = at
    if (kind.includes('seal')) bench.seal()
    if (kind.includes('restart')) bench.restart()
  }
  bench.fold(events.slice(from))
  return bench
}

describe('whatever the order of arrival', () => {
  test('[F4][I3] every legal order of a history gives the same rows', () => {
    const property = fc.property(histories(), moves, ({ events }, moved) => {
      expect(foldAll(legalPermutation(events, moved))).toEqual(foldAll(events))
    })
    // The rule on which all others rest, and the one with the rarest exceptions.
    fc.assert(property, { numRuns: 2 * effort.numRuns })
  })

  test('[F3][I3] events that arrive more than once change nothing', () => {
    const property = fc.property(histories(), moves, moves, ({ events }, moved, copied) => {
      const delivered = legalPermutation(events, moved)
      expect(foldAll(withCopies(delivered, copied))).toEqual(foldAll(delivered))
    })
    fc.assert(property, effort)
  })

  test('[F3][I3] a fact written again under a new id, by a process whose clock is ahead or behind, changes nothing', () => {
    const property = fc.property(histories(), moves, moves, ({ events }, moved, copied) => {
      const delivered = legalPermutation(events, moved)
      expect(foldAll(withCopies(delivered, copied, mayBeReminted))).toEqual(foldAll(delivered))
    })
    fc.assert(property, effort)
  })

  test('[S1][I2] batches, sealing of what has ended and restarts in between leave no trace in the rows', () => {
    const property = fc.property(deliveries(), cuts, ({ events }, wanted) => {
      const [whole, pieces] = [new Bench(), foldInPieces(events, wanted)]
      whole.fold(events)
      expect(pieces.rows()).toEqual(whole.rows())
      expect(pieces.parking()).toEqual(whole.parking())
    })
    fc.assert(property, effort)
  })
})

describe('the fold is arithmetic', () => {
  test('[F1][I2] the same events give the same rows', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      expect(foldAll(structuredClone(events))).toEqual(foldAll(events))
    })
    fc.assert(property, effort)
  })

  test('[F1] it changes no event, asks no clock, throws no dice and waits for nobody', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const frozen = structuredClone(events)
      deepFreeze(frozen)
      const bench = new Bench()
      const ambient = [
        vi.spyOn(Date, 'now'),
        vi.spyOn(Math, 'random'),
        vi.spyOn(performance, 'now'),
        vi.spyOn(globalThis, 'Date'),
      ]
      try {
        bench.fold(frozen, (_, verdict) => expect(verdict).not.toBeInstanceOf(Promise))
        for (const spy of ambient) expect(spy).not.toHaveBeenCalled()
      } finally {
        for (const spy of ambient) spy.mockRestore()
      }
      expect(frozen).toEqual(events)
    })
    fc.assert(property, effort)
  })
})

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  for (const member of Object.values(value)) deepFreeze(member)
}
