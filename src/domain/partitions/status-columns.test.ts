import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { partitionDefinition } from '../../partitions/definition.ts'
import { partitionSet } from '../../partitions/partition-set.ts'
import { StatusColumns, type Times } from './status-columns.ts'

const seed = Number(process.env['SEED'] ?? Date.now())
const COUNT = 3_000
const set = partitionSet(partitionDefinition.parse({ type: 'keys', keys: Array.from({ length: COUNT }, (_, i) => `k${i}`) }), {
  nowMs: 0,
  dynamicKeys: () => [],
})

type Fact =
  | { kind: 'made'; at: number; inputsAt: number; code: string }
  | { kind: 'failed' | 'cancelled' | 'wiped'; at: number }

function told(facts: readonly { position: number; fact: Fact }[]): StatusColumns {
  const columns = new StatusColumns(set)
  for (const { position, fact } of facts) {
    if (fact.kind === 'made') columns.made(position, fact.at, fact.inputsAt, columns.codeOf(fact.code))
    else if (fact.kind === 'wiped') columns.wiped(position, fact.at)
    else columns.attempted(position, fact.at, fact.kind === 'failed')
  }
  return columns
}

const at = fc.integer({ min: 1, max: 50 })
const fact: fc.Arbitrary<Fact> = fc.oneof(
  // As the rest follows from the materialization that counts, so it does here.
  at.map((time) => ({ kind: 'made' as const, at: time, inputsAt: time - 1, code: `v${time % 3}` })),
  fc.record({ kind: fc.constantFrom('failed', 'wiped'), at }),
)
const facts = fc.array(fc.record({ position: fc.constantFrom(0, 1, 1_023, 1_024, 2_999), fact }), { maxLength: 30 })

const shown = (columns: StatusColumns, position: number) => ({
  made: columns.isMade(position),
  madeAt: columns.madeAt(position),
  inputsAt: columns.inputsAt(position),
  code: columns.codes[columns.code(position)],
  failed: columns.isFailed(position),
})

describe('what is known of partitions', () => {
  test(`[P10] is the same in whatever order and however often it was told (seed ${seed})`, () => {
    const shuffled = facts.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray([...list, ...list], { minLength: list.length * 2 })),
    )
    fc.assert(
      fc.property(shuffled, ([list, again]) => {
        const [one, other] = [told(list), told(again)]
        for (const position of [0, 1, 1_023, 1_024, 2_999]) expect(shown(other, position)).toEqual(shown(one, position))
      }),
      { seed },
    )
  })

  test(`of a span is what is known of each of it (seed ${seed})`, () => {
    const ends = fc.tuple(fc.nat({ max: COUNT - 1 }), fc.nat({ max: COUNT - 1 }))
    fc.assert(
      fc.property(facts, facts, ends, (before, after, [a, b]) => {
        const columns = told(before)
        // Counted once, so that a change has something to correct.
        columns.span(0, COUNT - 1)
        for (const { position, fact: each } of after) {
          if (each.kind === 'made') columns.made(position, each.at, each.inputsAt, columns.codeOf(each.code))
          else if (each.kind === 'wiped') columns.wiped(position, each.at)
        }
        const [from, to] = [Math.min(a, b), Math.max(a, b)]
        let madeAt = 0
        let missing = 0
        for (let position = from; position <= to; position++) {
          if (columns.isMade(position)) madeAt = Math.max(madeAt, columns.madeAt(position))
          else missing++
        }
        expect(columns.span(from, to)).toEqual({ madeAt, missing })
      }),
      { seed },
    )
  })

  test('two materializations of the same millisecond are told to the caller, which can ask the table', () => {
    const columns = new StatusColumns(set)
    columns.made(7, 100, 90, columns.codeOf('v1'))
    columns.made(7, 100, 90, columns.codeOf('v1'))
    expect([...columns.ties]).toEqual([])
    columns.made(7, 100, 95, columns.codeOf('v2'))
    expect([...columns.ties]).toEqual([7])
    columns.breakTie(7, 95, columns.codeOf('v2'))
    expect(shown(columns, 7)).toMatchObject({ inputsAt: 95, code: 'v2' })
  })

  const moments =
    (made: readonly number[], inputs: readonly number[]) =>
    (what: keyof Times, into: Float64Array): boolean => {
      into.set(what === 'made' ? made : inputs)
      return into.every((time) => time > 0)
    }

  test('neighbours are taken over at once where nothing was known of them, and not at all where something was', () => {
    const columns = new StatusColumns(set)
    columns.span(0, COUNT - 1)
    expect(columns.madeWithSameCode(1_000, 3, { code: columns.codeOf('v1') }, moments([5, 6, 7], [4, 5, 6]))).toBe(true)
    expect(columns.span(0, COUNT - 1)).toEqual({ madeAt: 7, missing: COUNT - 3 })
    expect(shown(columns, 1_001)).toMatchObject({ madeAt: 6, inputsAt: 5, code: 'v1' })
    expect(columns.madeWithSameCode(998, 3, { code: columns.codeOf('v2') }, moments([9, 9, 9], [9, 9, 9]))).toBe(false)
    expect(columns.isMade(998)).toBe(false)
    expect(shown(columns, 1_000)).toMatchObject({ madeAt: 5, inputsAt: 4, code: 'v1' })
  })

  test('neighbours of which one has no moment are not taken over, and leave nothing behind', () => {
    const columns = new StatusColumns(set)
    expect(columns.madeWithSameCode(10, 2, { code: columns.codeOf('v1') }, moments([5, 6], [4, Number.NaN]))).toBe(false)
    expect(shown(columns, 10)).toEqual({ made: false, madeAt: 0, inputsAt: 0, code: undefined, failed: false })
  })

  test('where it does not matter when partitions were made, it begins to when something else is told of one', () => {
    for (const tell of [
      (columns: StatusColumns) => columns.made(11, 7, 7, columns.codeOf('v1')),
      (columns: StatusColumns) => columns.wiped(11, 7),
      (columns: StatusColumns) => columns.attempted(11, 7, true),
    ]) {
      const columns = new StatusColumns(set, { made: false, inputs: true })
      expect(columns.madeWithSameCode(10, 3, { code: columns.codeOf('v1') }, moments([], [4, 5, 6]))).toBe(true)
      columns.made(20, 7, 6, columns.codeOf('v1'))
      expect(shown(columns, 12)).toEqual({ made: true, madeAt: 0, inputsAt: 6, code: 'v1', failed: false })
      expect(columns.wantsMade).toBe(false)
      tell(columns)
      expect(columns.wantsMade).toBe(true)
    }
  })

  test('as many versions of the code are told apart as there are partitions', () => {
    const columns = new StatusColumns(set)
    for (let position = 0; position < COUNT; position++) columns.made(position, 1, 1, columns.codeOf(`v${position}`))
    for (let position = 0; position < COUNT; position++) expect(shown(columns, position).code).toBe(`v${position}`)
  })

  test('[P9] a wipe counts for what was made up to its moment, and not for what is made later', () => {
    expect(
      told([
        { position: 0, fact: { kind: 'made', at: 5, inputsAt: 4, code: 'v' } },
        { position: 0, fact: { kind: 'wiped', at: 5 } },
      ]).isMade(0),
    ).toBe(false)
    expect(
      told([
        { position: 0, fact: { kind: 'wiped', at: 5 } },
        { position: 0, fact: { kind: 'made', at: 6, inputsAt: 4, code: 'v' } },
      ]).isMade(0),
    ).toBe(true)
  })
})
