import { expect, test } from 'vitest'
import { ulidAt } from '../../lib/ulid.ts'
import { Paths } from '../paths.ts'
import { missingSegments } from './missing-segments.ts'
import { formatSequence, latest, parseSequence, SeenSegments, type Sequenced, withPublished } from './sequence.ts'

const ulid = (second: number): string => ulidAt(second * 1_000, '0'.repeat(26))
const WRITER = ulid(1)
const numbered = (...numbers: number[]): Sequenced[] =>
  numbers.map((number) => ({ ulid: ulid(number), sequence: { writer: WRITER, number } }))

function seen(segments: readonly Sequenced[]): SeenSegments {
  const all = new SeenSegments()
  for (const segment of segments) all.add(segment)
  return all
}

const ranges = (all: SeenSegments, ...[since, ...named]: Parameters<SeenSegments['gaps']>) =>
  all.gaps(since, ...named).map(({ first, last, names }) => [first, last, names])

test('a sequence is read as it was written, and nothing else is one', () => {
  const sequence = { writer: WRITER, number: 12 }
  expect(parseSequence(formatSequence(sequence))).toEqual(sequence)
  for (const other of [undefined, 12, '', WRITER, `${WRITER}-0`, `${WRITER}-1x`, `x-1`])
    expect(parseSequence(other)).toBeUndefined()
})

test('a gap is named by its numbers, the first segment of a writer and the last published one by their names', () => {
  expect(ranges(seen(numbered(1, 2, 3)), {})).toEqual([])
  expect(ranges(seen(numbered(1, 4, 5, 7)), {})).toEqual([
    [2, 3, []],
    [6, 6, []],
  ])
  expect(ranges(seen(numbered(2)), {})).toEqual([[1, 1, [WRITER]]])
  const published = { [WRITER]: { number: 3, segment: ulid(3) } }
  expect(ranges(seen(numbered(1)), {}, published)).toEqual([[2, 3, [ulid(3)]]])
  expect(ranges(seen([]), {}, {}, published)).toEqual([[1, 3, [WRITER, ulid(3)]]])
  expect(ranges(seen(numbered(1, 2, 3, 4)), {}, published)).toEqual([])
})

test('what came after the published segments begins with the next number, and segments of earlier versions have none', () => {
  const since = { [WRITER]: { number: 3, segment: ulid(3) } }
  expect(ranges(seen(numbered(4, 5)), since)).toEqual([])
  expect(ranges(seen(numbered(5)), since)).toEqual([[4, 4, []]])
  expect(ranges(seen([{ ulid: ulid(9) }]), since)).toEqual([])
})

test('the last segments of few writers are kept, those that wrote last, and an unknown writer is not suspected when some were left out', () => {
  let last = {}
  for (let i = 0; i < 40; i++)
    last = withPublished(last, [{ ulid: ulid(100 + i), sequence: { writer: ulid(100 + i), number: 1 } }])
  expect(Object.keys(last)).toHaveLength(16)
  expect(last).toHaveProperty(ulid(139))
  expect(ranges(seen(numbered(7, 9)), last)).toEqual([[8, 8, []]])
  expect(latest([{ a: { number: 2, segment: 'y' } }, { a: { number: 1, segment: 'x' } }])).toEqual({
    a: { number: 2, segment: 'y' },
  })
})

test('a gap is not reported beside a segment between its neighbours that is reported already', () => {
  const paths = new Paths({ tenant_id: 'acme', workspace_id: 'analytics' })
  const gaps = seen(numbered(1, 4)).gaps({})
  expect(missingSegments(paths, gaps, [ulid(2), ulid(3)])).toEqual([])
  expect(missingSegments(paths, gaps, [ulid(2), ulid(9)])).toMatchObject([
    { message: expect.stringMatching(/segments 2 to 3 of the writer .* are missing, which came after .* and before/) },
  ])
})
