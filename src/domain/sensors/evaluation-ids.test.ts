import fc from 'fast-check'
import { expect, test } from 'vitest'
import { id, runKey } from '../../model/envelope.ts'
import { type EvaluationSource, evalIdOf, runKeyOfEvaluation, runKeysOfSensor } from './evaluation-ids.ts'

// Letters that separate parts, or that are escaped, are where two different things could get one name.
const text = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom('a', ':', '%', '=', '3', 'A', '/', 'ü', '\ud800') }),
  fc.string({ minLength: 1, maxLength: 512, unit: 'grapheme' }).filter((each) => each.length <= 512),
)
const source: fc.Arbitrary<EvaluationSource> = fc.oneof(
  fc.record({ source: fc.constant('push' as const), message_id: text, try: fc.integer({ min: 1, max: 999 }) }),
  fc.record({ source: fc.constant('poll' as const), state_version: fc.nat() }),
)

test('[A25] whatever people call sensors, messages and keys, ids and run keys stay within bounds, and no two are the same by accident', () => {
  const evaluation = fc.tuple(text, source, text, fc.nat({ max: 999 }), fc.option(text))
  const property = fc.property(evaluation, evaluation, (a, b) => {
    const evalIds = [a, b].map(([sensor, from, begun]) => evalIdOf(sensor, from, begun))
    const keys = [a, b].map(([sensor, from, , index, key]) => runKeyOfEvaluation(sensor, from, index, key))
    for (const each of evalIds) expect(id.safeParse(each).success, each).toBe(true)
    for (const each of keys) expect(runKey.safeParse(each).success, each).toBe(true)
    const same = (x: unknown, y: unknown) => JSON.stringify(x) === JSON.stringify(y)
    expect(evalIds[0] === evalIds[1]).toBe(same(a.slice(0, 3), b.slice(0, 3)))
    const [own, other] = [a, b].map(([sensor]) => runKeysOfSensor(sensor))
    expect(keys[0]?.startsWith(own ?? '')).toBe(true)
    expect(keys[0]?.startsWith(other ?? '')).toBe(a[0] === b[0])
  })
  fc.assert(property, { numRuns: 2_000 })
})
