import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Column, type Columns, col } from '../../model/column.ts'
import { type AnyRow, defineTable, type MergeGroup, type PickedBy, type Table } from '../../model/table.ts'
import { compareKeys, compareTuples, keyOf, keyText, mergeRows, sortedByKey } from './row-merge.ts'

const status = defineTable({
  name: 'partition_status',
  doc: 'For the tests.',
  key: ['asset_key', 'partition_key'],
  storage: {
    kind: 'cold',
    merge: [
      { pick: 'largest', by: ['done_at', 'done_event'], columns: ['done_at', 'done_event', 'done_run'] },
      { pick: 'smallest', by: ['seen_at'], columns: ['seen_at', 'seen_run'] },
    ],
  },
  columns: {
    asset_key: col.string('Asset.'),
    partition_key: col.string('Partition.'),
    done_at: col.optional(col.timestamp('Last success.')),
    done_event: col.optional(col.string('Its event.')),
    done_run: col.optional(col.string('Its run.')),
    seen_at: col.optional(col.timestamp('First sight.')),
    seen_run: col.optional(col.string('Its run.')),
    note: col.optional(col.string('In no group.')),
  },
})
const key = { asset_key: 'a', partition_key: 'p' }

test('the row that wins a group gives all of its columns, and each group may have another winner', () => {
  const early = { ...key, done_at: 1, done_event: 'e1', done_run: 'r1', seen_at: 1, seen_run: 'r1', row_version: '01' }
  const late = { ...key, done_at: 2, done_event: 'e2', done_run: null, seen_at: 2, seen_run: 'r2', row_version: '02' }
  expect(mergeRows(status, early, late)).toEqual({ ...late, seen_at: 1, seen_run: 'r1', note: null })
})

test('a null never wins a group, neither the largest nor the smallest', () => {
  const known = { ...key, done_at: 1, done_event: 'e1', done_run: 'r1', seen_at: 1, seen_run: 'r1', row_version: '01' }
  const blank = { ...key, done_at: null, done_event: 'e9', done_run: 'r9', seen_at: null, seen_run: 'r0', row_version: '02' }
  expect(mergeRows(status, known, blank)).toEqual({ ...known, note: null, row_version: '02' })
  expect(mergeRows(status, blank, known)).toEqual({ ...known, note: null, row_version: '02' })
})

test('of two columns in the place of one, the first counts where it is not null, in whatever order rows meet', () => {
  const table = defineTable({
    name: 'made',
    doc: 'For the tests.',
    key: ['asset_key'],
    storage: { kind: 'cold', merge: [{ pick: 'largest', by: [['order', 'at']], columns: ['order', 'at', 'what'] }] },
    columns: {
      asset_key: col.string('Asset.'),
      order: col.optional(col.timestamp('In the order of the record.')),
      at: col.timestamp('By the clock.'),
      what: col.string('What.'),
    },
  })
  const row = (what: string, at: number, order: number | null) => ({ asset_key: 'a', what, at, order, row_version: '01' })
  const [first, ahead, next, passed] = [row('1', 10, null), row('2', 90, null), row('3', 20, 91), row('4', 95, null)]
  for (const [a, b] of [
    [first, ahead],
    [ahead, next],
    [next, passed],
  ] as const)
    for (const merged of [mergeRows(table, a, b), mergeRows(table, b, a)]) expect(merged).toEqual(b)
})

test('a column in no group keeps the value that is not null, and the row version is the largest', () => {
  const merged = mergeRows(status, { ...key, note: 'kept', row_version: '01' }, { ...key, row_version: '02' })
  expect(merged).toMatchObject({ note: 'kept', row_version: '02' })
})

test('a group picked by the row version takes it along, so the first fact stays the first', () => {
  const index = defineTable({
    name: 'run_key_index',
    doc: 'For the tests.',
    key: ['run_key'],
    storage: { kind: 'cold', merge: [{ pick: 'smallest', by: ['row_version'], columns: ['run_id'] }] },
    columns: { run_key: col.string('Key.'), run_id: col.string('Run.') },
  })
  const [first, second, third] = ['01', '02', '03'].map((version) => ({
    run_key: 'k',
    run_id: `run ${version}`,
    row_version: version,
  }))
  // With the largest row version kept beside the first run, the second would now take the group away from it.
  const merged = mergeRows(index, mergeRows(index, first!, third!), second!)
  expect(merged).toEqual(first)
})

test('two groups that are picked by one column are refused, because they could not both carry it', () => {
  const table = defineTable({
    name: 'twice',
    doc: 'For the tests.',
    key: ['id'],
    storage: {
      kind: 'cold',
      merge: [
        { pick: 'largest', by: ['at'], columns: ['x'] },
        { pick: 'smallest', by: ['at'], columns: ['y'] },
      ],
    },
    columns: { id: col.string('Id.'), at: col.timestamp('When.'), x: col.string('X.'), y: col.string('Y.') },
  })
  const row = { id: 'a', at: 1, x: 'x', y: 'y', row_version: '1' }
  expect(() => mergeRows(table, row, { ...row })).toThrow(/twice\.at belongs to two merge groups/)
})

test('keys compare part by part, numbers as numbers and text by code unit', () => {
  const table = defineTable({
    name: 'pairs',
    doc: 'For the tests.',
    key: ['name', 'number'],
    storage: { kind: 'hot' },
    columns: { name: col.string('Name.'), number: col.int('Number.') },
  })
  const rows = [
    { name: '\u{1F600}', number: 1 },
    { name: '\uE000', number: 1 },
    { name: 'a', number: 10 },
    { name: 'a', number: 9 },
  ]
  const sorted = sortedByKey(
    table,
    rows.map((row) => ({ ...row, row_version: 'v' })),
  )
  // The emoji begins with the code unit D83D, so it stands before U+E000; in UTF-8 it would stand after.
  expect(sorted.map((row) => keyText(keyOf(table, row)))).toEqual(['["a",9]', '["a",10]', '["\u{1F600}",1]', '["\uE000",1]'])
  for (const [i, row] of sorted.entries()) {
    expect(compareKeys(table, row, sorted[0]!)).toBe(Math.sign(i))
    expect(compareTuples(keyOf(table, row), keyOf(table, sorted[0]!))).toBe(Math.sign(i))
  }
})

const cell: Record<Column['kind'], fc.Arbitrary<unknown>> = {
  string: fc.constantFrom('', 'a', 'b', '\uE000', '\u{1F600}'),
  int: fc.integer({ min: -2, max: 2 }),
  long: fc.integer({ min: 0, max: 3 }),
  double: fc.constantFrom(-1.5, 0, 2.5),
  boolean: fc.boolean(),
  timestamp: fc.integer({ min: 0, max: 3 }),
  strings: fc.array(fc.constantFrom('a', 'b'), { maxLength: 2 }),
  map: fc.dictionary(fc.constantFrom('x', 'y'), fc.constantFrom('1', '2'), { maxKeys: 2 }),
  json: fc.constantFrom({ a: 1 }, { a: 1, b: 2 }, [1], 'text', 0, false),
}

/** A table with some columns in groups, some alone, and the row version perhaps in one of them. */
const anyTable: fc.Arbitrary<Table> = fc
  .record({
    kinds: fc.array(fc.constantFrom(...(Object.keys(cell) as Column['kind'][])), { minLength: 1, maxLength: 7 }),
    owners: fc.array(fc.integer({ min: -1, max: 2 }), { minLength: 7, maxLength: 7 }),
    picks: fc.array(fc.constantFrom('largest' as const, 'smallest' as const), { minLength: 3, maxLength: 3 }),
    carried: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
    byVersion: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
  })
  .map(({ kinds, owners, picks, carried, byVersion }) => {
    const columns: Record<string, Column> = { id: col.string('Id.') }
    const names = kinds.map((kind, i) => {
      columns[`c${i}`] = col.optional({ kind, nullable: false, doc: 'Any.' })
      return `c${i}`
    })
    const merge = picks.flatMap((pick, group): MergeGroup[] => {
      const mine = names.filter((_, i) => owners[i] === group)
      const picking = [...mine.filter((_, i) => i === 0 || carried[i]), ...(byVersion === group ? ['row_version'] : [])]
      // Of two times, one stands for the other where it is not null.
      const [first, second] = picking.filter((name) => columns[name]?.kind === 'timestamp')
      const by: PickedBy[] =
        first === undefined || second === undefined
          ? picking
          : [[first, second], ...picking.filter((name) => name !== first && name !== second)]
      return by.length === 0 ? [] : [{ pick, by, columns: mine }]
    })
    return defineTable({
      name: 'any',
      doc: 'For the tests.',
      key: ['id'],
      storage: { kind: 'cold', merge },
      columns: columns as Columns,
    })
  })

/** Versions of one row; a column may be left out, as in the partial rows of a fold. */
function versionsOf(table: Table): fc.Arbitrary<AnyRow[]> {
  const columns = Object.entries(table.columns as Columns).filter(([name]) => name !== 'id')
  const cells = Object.fromEntries(
    columns.map(([name, { kind }]) => [name, fc.oneof(fc.constant(null), fc.constant(undefined), cell[kind], cell[kind])]),
  )
  const row = fc.record({ ...cells, row_version: fc.constantFrom('1', '2', '3') })
  return fc.array(
    row.map((values) => ({ id: 'x', ...values })),
    { minLength: 3, maxLength: 3 },
  )
}

const tableAndRows = anyTable.chain((table) => versionsOf(table).map((rows) => ({ table, rows })))

test('[S2] versions of a row come to the same, in whatever order and grouping they meet, and repeated as you like', () => {
  fc.assert(
    fc.property(tableAndRows, ({ table, rows: [a, b, c] }) => {
      const merge = (x: AnyRow, y: AnyRow): AnyRow => mergeRows(table, x, y)
      const before = structuredClone([a, b, c])
      const ab = merge(a!, b!)
      expect(merge(b!, a!)).toEqual(ab)
      expect(merge(ab, c!)).toEqual(merge(a!, merge(b!, c!)))
      expect(merge(ab, b!)).toEqual(ab)
      expect(merge(ab, ab)).toEqual(ab)
      expect(merge({ ...a! }, a!)).toEqual(Object.fromEntries(Object.keys(ab).map((name) => [name, a![name] ?? null])))
      expect([a, b, c]).toEqual(before)
    }),
    { numRuns: 3000 },
  )
})
