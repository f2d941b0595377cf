import fc from 'fast-check'
import { expect, test } from 'vitest'
import { orchestration } from '../../src/domain/index.ts'
import { Bench } from '../../src/testing/histories/fold.ts'
import { histories } from '../../src/testing/histories/histories.ts'

/** Enough for the rarest event, which is in about one history of fifty. The seed is fixed: a miss is no accident. */
const sample = { numRuns: 400, seed: 1 }

test('every event of the registry is applied in some generated history, so that no fold goes untried', () => {
  const applied = new Set<string>()
  for (const { events } of fc.sample(histories(), sample)) {
    new Bench().fold(events, ({ event_type }, { kind }) => kind === 'applied' && applied.add(event_type))
  }
  const untried = orchestration.events.map(({ type }) => type).filter((type) => !applied.has(type))
  expect(
    untried,
    'Let an actor of src/testing/histories write it, twice about the same thing: the tests of arrival then fold it in any order.',
  ).toEqual([])
})
