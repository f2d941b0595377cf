import { parquetMetadata } from 'hyparquet'
import { expect, test } from 'vitest'
import { type Columns, col } from '../../model/column.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import { decodeRows, encodeTableRows } from './parquet.ts'
import { ROW_GROUP_ROWS, tableWriter } from './write.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
const { optional } = col

function tableOf<C extends Columns>(columns: C, name = 'samples'): Table {
  return defineTable({
    name,
    doc: 'For the tests.',
    key: ['id'],
    storage: { kind: 'hot' },
    columns: { id: col.string('Id.'), ...columns },
  })
}

const everyKind = {
  text: col.string('Text.'),
  number: col.int('Int.'),
  big: col.long('Long.'),
  real: col.double('Double.'),
  flag: col.boolean('Boolean.'),
  at: col.timestamp('Timestamp.'),
  list: col.strings('Strings.'),
  tags: col.map('Map.'),
  data: col.json('Json.'),
}
const everyNullable = Object.fromEntries(Object.entries(everyKind).map(([name, column]) => [`maybe_${name}`, optional(column)]))
const samples = tableOf({ ...everyKind, ...everyNullable })

const values = {
  text: 'plain',
  number: -2147483648,
  big: Number.MAX_SAFE_INTEGER,
  real: 0.1,
  flag: true,
  at: 1736935200123,
  list: ['a', '', '日本'],
  tags: { a: '1', b: '' },
  data: { nested: [1, null, { deep: true }] },
}
const full = (id: string, over: AnyRow = {}): AnyRow => ({
  id,
  ...values,
  ...Object.fromEntries(Object.keys(values).map((name) => [`maybe_${name}`, null])),
  row_version: `v-${id}`,
  ...over,
})

for (const codec of ['snappy', 'zstd'] as const) {
  test(`rows come back as they were written, every kind of column, null or not (${codec})`, async () => {
    const rows = [
      full('1'),
      full('2', Object.fromEntries(Object.entries(values).map(([name, value]) => [`maybe_${name}`, value]))),
      full('3', {
        maybe_list: [],
        maybe_tags: {},
        list: [],
        tags: {},
        maybe_data: 'text',
        data: 0,
        maybe_text: '',
        maybe_flag: false,
        maybe_at: -1,
      }),
      full('4', {
        maybe_text: '\uFEFFbegins with a byte order mark',
        data: [],
        maybe_data: {},
        maybe_big: -Number.MAX_SAFE_INTEGER,
      }),
      full('5', { text: '😀 and \uE000', list: ['😀'], tags: { '😀': '\uE000' }, data: { '😀': 'x\u0000y' } }),
    ]
    expect(await decodeRows(samples, encodeTableRows(samples, rows, scope, { codec }))).toEqual(rows)
  })
}

test('a column that a row leaves out is null', async () => {
  const table = tableOf({ note: optional(col.string('Note.')) })
  const [row] = await decodeRows(table, encodeTableRows(table, [{ id: 'a', row_version: 'v' }], scope))
  expect(row).toEqual({ id: 'a', note: null, row_version: 'v' })
})

test('a file without rows can be read', async () => {
  expect(await decodeRows(samples, encodeTableRows(samples, [], scope))).toEqual([])
})

test('equal rows give equal bytes, however they were handed over and in whatever order their maps were filled', () => {
  const rows = Array.from({ length: ROW_GROUP_ROWS * 2 + 7 }, (_, i) =>
    full(`k${i}`, { number: i, tags: { a: `${i}`, b: 'x' } }),
  )
  const whole = encodeTableRows(samples, rows, scope)
  const writer = tableWriter(samples, scope)
  const shuffled = rows.map((row) => ({ ...row, tags: { b: 'x', a: row['tags'].a }, data: { nested: row['data'].nested } }))
  for (let i = 0, size = 1; i < shuffled.length; i += size, size = (size * 3) % 4001) writer.write(shuffled.slice(i, i + size))
  expect(writer.rows).toBe(rows.length)
  expect(Buffer.compare(writer.finish(), whole)).toBe(0)
  expect(parquetMetadata(whole).row_groups.map((group) => Number(group.num_rows))).toEqual([5000, 5000, 7])
})

test('rows may change after they were handed to a writer', async () => {
  const writer = tableWriter(samples, scope)
  const row = full('a', { list: ['before'] })
  writer.write([row])
  row['text'] = 'after'
  row['list'].push('after')
  expect((await decodeRows(samples, writer.finish()))[0]).toMatchObject({ text: 'plain', list: ['before'] })
})

test('no two decoded rows share a JSON value, so changing one leaves the other alone', async () => {
  const rows = Array.from({ length: 100 }, (_, i) => full(`${i}`, { data: { same: [] } }))
  const [first, second] = await decodeRows(samples, encodeTableRows(samples, rows, scope))
  first!['data'].same.push(1)
  expect(second!['data']).toEqual({ same: [] })
})

test('a file tells its table and format, tenant and workspace stand in every row, nulls are counted', () => {
  const metadata = parquetMetadata(encodeTableRows(samples, [full('a'), full('b')], scope))
  expect(metadata.key_value_metadata).toEqual([
    { key: 'servo.table', value: 'samples' },
    { key: 'servo.format', value: '1' },
  ])
  const statistics = (name: string) =>
    metadata.row_groups[0]!.columns.find((c) => c.meta_data!.path_in_schema[0] === name)!.meta_data!.statistics
  expect(statistics('tenant_id')).toMatchObject({ min_value: 'acme', max_value: 'acme', null_count: 0n })
  expect(statistics('workspace_id')).toMatchObject({ min_value: 'prod', max_value: 'prod' })
  expect(statistics('maybe_text')).toMatchObject({ null_count: 2n })
})

test('text beyond U+FFFF has no smallest and largest value, for its column and row group alone', () => {
  const rows = Array.from({ length: ROW_GROUP_ROWS + 1 }, (_, i) => full(`k${i}`, { text: i === 0 ? '😀' : 'plain' }))
  const metadata = parquetMetadata(encodeTableRows(samples, rows, scope))
  const limits = metadata.row_groups.map((group) =>
    ['text', 'id'].map((name) => {
      const { min_value, null_count } = group.columns.find((c) => c.meta_data!.path_in_schema[0] === name)!.meta_data!
        .statistics!
      return [min_value, null_count]
    }),
  )
  expect(limits).toEqual([
    [
      [undefined, 0n],
      ['k0', 0n],
    ],
    [
      ['plain', 0n],
      ['k5000', 0n],
    ],
  ])
})

const bad: [string, AnyRow, RegExp][] = [
  ['null in a required column', { text: null }, /samples\.text of row \["a"\] must be text .*, not null/],
  ['a column left out that every row must have', { at: undefined }, /samples\.at .* not null/],
  ['a number as text', { text: 5 }, /samples\.text .* not the number 5/],
  ['half a surrogate pair', { text: '\uD800' }, /samples\.text .* without lone surrogates/],
  ['half a surrogate pair deep in JSON', { data: { a: '\uDC00' } }, /samples\.data/],
  [
    'an integer of 33 bits',
    { number: 2 ** 31 },
    /samples\.number of row \["a"\] must be an integer of 32 bits, not the number 2147483648/,
  ],
  ['a fraction as an integer', { maybe_number: 1.5 }, /samples\.maybe_number .* or null, not the number 1\.5/],
  ['an unsafe integer', { big: 2 ** 53 }, /samples\.big .* a safe integer/],
  ['a bigint', { big: 5n }, /samples\.big .* not the bigint 5/],
  ['a Date', { at: new Date(0) }, /samples\.at .* not an object/],
  ['a number that is not finite', { real: Number.NaN }, /samples\.real .* a finite number, not the number NaN/],
  ['a null among strings', { list: ['a', null] }, /samples\.list/],
  ['an array with holes', { list: new Array(2) }, /samples\.list/],
  ['a number in a map', { tags: { a: 1 } }, /samples\.tags/],
  ['the map key __proto__', { tags: JSON.parse('{"__proto__":"x"}') }, /samples\.tags/],
  ['a function in JSON', { data: { f: () => 1 } }, /samples\.data .* a JSON value/],
]
test.each(bad)('%s is refused with the table, the column and the key', (_, over, message) => {
  const write = () => encodeTableRows(samples, [full('fine'), full('a', over)], scope)
  expect(write).toThrow(message)
  expect(write).toThrow(expect.objectContaining({ kind: 'bug', code: 'bad_row' }))
})

test('a file of an older version of the table is read with null for the columns it lacks', async () => {
  const older = tableOf({ text: col.string('Text.') })
  const newer = tableOf({ text: col.string('Text.'), list: optional(col.strings('New.')), at: optional(col.timestamp('New.')) })
  const bytes = encodeTableRows(older, [{ id: 'a', text: 't', row_version: 'v' }], scope)
  expect(await decodeRows(newer, bytes)).toEqual([{ id: 'a', text: 't', list: null, at: null, row_version: 'v' }])
})

test('a file of a newer version of the table is read without the columns we do not know', async () => {
  const older = tableOf({ text: col.string('Text.') })
  const newer = tableOf({ tags: col.map('New.'), text: col.string('Text.'), list: optional(col.strings('New.')) })
  const bytes = encodeTableRows(newer, [{ id: 'a', text: 't', tags: { a: 'b' }, list: ['x'], row_version: 'v' }], scope)
  expect(await decodeRows(older, bytes)).toEqual([{ id: 'a', text: 't', row_version: 'v' }])
})

test('a column that became nullable or required is read as long as its values allow it', async () => {
  const required = tableOf({ text: col.string('Text.') })
  const nullable = tableOf({ text: optional(col.string('Text.')) })
  const row = { id: 'a', text: 't', row_version: 'v' }
  expect(await decodeRows(nullable, encodeTableRows(required, [row], scope))).toEqual([row])
  expect(await decodeRows(required, encodeTableRows(nullable, [row], scope))).toEqual([row])
  const withNull = encodeTableRows(nullable, [{ ...row, text: null }], scope)
  await expect(decodeRows(required, withNull, 'l0/7.parquet')).rejects.toThrow(
    /l0\/7\.parquet .* samples\.text is null in row 0/,
  )
})

const changed: [string, Columns, Columns, string, RegExp][] = [
  ['missing', {}, { text: col.string('Text.') }, 'column_missing', /f\.parquet has no column samples\.text/],
  [
    'an int now',
    { text: col.string('Was text.') },
    { text: col.int('Int.') },
    'column_type_changed',
    /stores samples\.text as BYTE_ARRAY\(STRING\), which should be INT32/,
  ],
  [
    'a timestamp now',
    { at: col.long('Was long.') },
    { at: col.timestamp('Time.') },
    'column_type_changed',
    /INT64\(TIMESTAMP MILLIS UTC\)/,
  ],
  ['a list now', { list: col.map('Was map.') }, { list: col.strings('List.') }, 'column_type_changed', /samples\.list/],
  ['text now', { data: col.json('Was JSON.') }, { data: col.string('Text.') }, 'column_type_changed', /BYTE_ARRAY\(JSON\)/],
]
test.each(changed)('a required column that is %s makes the file unreadable, by name', async (_, was, is, code, message) => {
  const row = { id: 'a', text: 't', at: 1, list: {}, data: 1, row_version: 'v' }
  const error = await decodeRows(tableOf(is), encodeTableRows(tableOf(was), [row], scope), 'f.parquet').catch((e) => e)
  expect(error).toMatchObject({ kind: 'corrupt', code })
  expect(error.message).toMatch(message)
})

test('a file of another table is refused', async () => {
  const other = tableOf({ ...everyKind, ...everyNullable }, 'others')
  await expect(decodeRows(samples, encodeTableRows(other, [full('a')], scope))).rejects.toThrow(
    /holds rows of others, not of samples/,
  )
})

test('a damaged file is a corrupt file with its name, wherever the damage is', async () => {
  const rows = Array.from({ length: 300 }, (_, i) => full(`k${i}`, { text: `text ${i}` }))
  const bytes = encodeTableRows(samples, rows, scope, { codec: 'zstd' })
  for (const damage of [
    bytes.subarray(0, 100),
    bytes.subarray(0, bytes.length - 3),
    new Uint8Array(0),
    new Uint8Array(bytes.length),
  ]) {
    await expect(decodeRows(samples, damage, 'base/9.parquet')).rejects.toMatchObject({
      kind: 'corrupt',
      code: 'file_unreadable',
    })
  }
  const scrambled = Uint8Array.from(bytes).fill(0xa5, 20, 2000)
  await expect(decodeRows(samples, scrambled, 'base/9.parquet')).rejects.toThrow(/base\/9\.parquet cannot be read/)
})
