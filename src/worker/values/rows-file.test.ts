import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openDuckDb } from '../../lib/sql/duckdb.ts'
import { fieldsOf } from '../../sdk/columns.ts'
import type { StandardSchemaV1 } from '../../sdk/standard-schema.ts'
import { timeOf } from './given-values.ts'
import { readRowsFile } from './rows-file.ts'

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-rows-file-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

const schema = z.object({
  id: z.string(),
  amount: z.number(),
  count: z.int(),
  big: z.bigint(),
  ok: z.boolean(),
  at: z.date(),
  tags: z.array(z.string()),
  note: z.string().nullable(),
  more: z.string().optional(),
})

const row = {
  id: '007',
  amount: 1.5,
  count: 3,
  big: 9007199254740993n,
  ok: true,
  at: new Date('2025-03-01T09:00:00.123Z'),
  tags: ['a', 'b'],
  note: null,
  more: undefined,
}

/** The rows of a file with this name and content, as they are given to a schema. */
function read(name: string, content: string | Uint8Array, of: StandardSchemaV1 = schema): Promise<unknown[]> {
  fs.writeFileSync(path.join(folder, name), content)
  return Array.fromAsync(readRowsFile({ path: path.join(folder, name), assetKey: 'raw/orders', name, fields: fieldsOf(of) }))
}

describe('CSV', () => {
  const header = 'id,amount,count,big,ok,at,tags,note,more'

  test('has the types of the schema, and keeps a missing value apart from an empty text', async () => {
    const line = '007,1.5,3,9007199254740993,True,2025-03-01 09:00:00.123456+00,"[""a"",""b""]",,'
    expect(await read('a.csv', `\ufeff${header}\r\n${line}\r\n\r\n`)).toEqual([row])
    expect(await read('a.csv', 'id,note,more\n"","",""\n,,', schema.pick({ id: true, note: true, more: true }))).toEqual([
      { id: '', note: '', more: '' },
      { id: '', note: null, more: undefined },
    ])
  })

  test('has commas, quotes and line ends within quotes, wherever the file is cut into pieces', async () => {
    const text = z.object({ a: z.string(), b: z.string() })
    // Longer than the pieces in which a file is read.
    const long = `${'ä'.repeat(50_000)}\n"quoted", 日本`
    const rows = Array.from({ length: 5 }, (_, i) => ({ a: `${i}${long}`, b: '5" pipe' }))
    const content = `a,b\n${rows.map(({ a, b }) => `"${a.replaceAll('"', '""')}",${b}`).join('\n')}`
    expect(await read('b.csv', content, text)).toEqual(rows)
  })

  test('has the columns of the schema at least, with rows and without', async () => {
    const text = z.object({ a: z.string(), b: z.string().optional() })
    expect(await read('h.csv', 'a\n', text)).toEqual([])
    for (const wrong of ['', 'x;y\n', 'a;b\r1;2\r', 'b\n1\n', 'a;b\n1;2\n'])
      await expect(read('h.csv', wrong, text), wrong).rejects.toThrow('the first line of h.csv has no column a')
    await expect(read('h.csv', 'a;b\n1;2\n', text)).rejects.toMatchObject({
      hint: expect.stringContaining('commas instead of ;'),
    })
  })

  test('has rows of a bounded size', async () => {
    const text = z.object({ a: z.string() })
    await expect(read('f.csv', `a\n${','.repeat(200_000)}\n`, text)).rejects.toThrow('more than 100000 fields')
  })

  test('leaves to the schema what a transform takes, and to defaults what is missing', async () => {
    const odd = z.object({
      n: z.string().transform(Number).pipe(z.number()),
      level: z.number().default(3),
      flag: z.stringbool(),
      either: z.union([z.string(), z.number()]),
      kind: z.enum(['a', 'b']),
    })
    expect(await read('c.csv', 'n,level,flag,either,kind,extra\n007,,yes,12,a,x\n', odd)).toEqual([
      { n: '007', level: undefined, flag: 'yes', either: '12', kind: 'a', extra: 'x' },
    ])
  })

  test.each<[string, string, RegExp]>([
    [
      'a number',
      'id,amount\na,1\nb,twelve\n',
      /^row 2 of bad\.csv \(line 3\) has "twelve" in column amount, which must be a number$/,
    ],
    ['a whole number', 'big\n1.5\n', /^row 1 of bad\.csv \(line 2\) has "1.5" in column big, which must be a whole number$/],
    ['a time', 'at\n2025-02-30\n', /in column at, which must be a time such as/],
    ['true or false', 'ok\n1\n', /in column ok, which must be true or false$/],
    ['JSON', 'tags\na\n', /in column tags, which must be JSON$/],
    [
      'as many fields as the header',
      'id,note\n"a\n\nb",1\nc\n',
      /^row 2 of bad\.csv \(line 5\) has 1 field, and the header has 2$/,
    ],
    ['a closing quote', 'id\n"a\n', /bad\.csv is not CSV: a quote opens in the row of line 2 and is never closed$/],
    ['a field that ends with its quote', 'id\n"a"b\n', /line 2 has "b" behind the closing quote/],
    ['one column of a name', 'id,id\n', /two columns id$/],
    ['a name for each column', 'id,\n', /column 2 of bad\.csv has no name$/],
  ])('needs %s, and the error says where', async (_, content, message) => {
    await expect(read('bad.csv', content, schema.partial())).rejects.toThrow(message)
  })
})

describe('NDJSON', () => {
  test('has the types of the schema, with what only Python writes', async () => {
    const line =
      '{"id": "007", "amount": 1.5, "count": 3, "big": 9007199254740993, "ok": true, "at": "2025-03-01T09:00:00.123Z", "tags": ["a", "b"], "note": null, "more": null}'
    expect(await read('a.ndjson', `${line}\n\n`)).toEqual([row])
    expect(await read('a.ndjson', '{"amount": NaN}')).toEqual([{ amount: Number.NaN }])
  })

  test.each<[string, string, RegExp]>([
    ['JSON', '{"id": "a"}\n{"id": \n', /^row 2 of bad\.ndjson \(line 2\) is not JSON: /],
    ['an object on each line', '\n[1]\n', /^row 1 of bad\.ndjson \(line 2\) is \[1\], and not an object$/],
    ['times', '{"at": "yesterday"}', /^row 1 of bad\.ndjson \(line 1\) has "yesterday" in column at, which must be a time/],
  ])('needs %s, and the error says where', async (_, content, message) => {
    await expect(read('bad.ndjson', content)).rejects.toThrow(message)
  })
})

describe('Parquet', () => {
  const select = `SELECT '007' AS id, 1.5::DECIMAL(5, 2) AS amount, 3::BIGINT AS count, 9007199254740993::BIGINT AS big, true AS ok,
    TIMESTAMPTZ '2025-03-01 09:00:00.123Z' AS at, ['a', 'b'] AS tags, NULL::VARCHAR AS note, NULL::VARCHAR AS more`

  test.each(['snappy', 'gzip', 'zstd', 'brotli', 'uncompressed'])(
    'of other programs has the types of the schema (%s)',
    async (codec) => {
      const file = path.join(folder, `${codec}.parquet`)
      const { connection, close } = await openDuckDb()
      await connection.run(`COPY (${select}) TO '${file}' (FORMAT parquet, COMPRESSION ${codec})`)
      close()
      expect(await read(`${codec}.parquet`, fs.readFileSync(file))).toEqual([row])
    },
  )

  test('has days as text where the schema takes text, and whole numbers in lists as numbers', async () => {
    const file = path.join(folder, 'days.parquet')
    const { connection, close } = await openDuckDb()
    await connection.run(
      `COPY (SELECT DATE '2025-03-01' AS day, DATE '2025-03-01' AS at, {a: [1::BIGINT]} AS deep) TO '${file}'`,
    )
    close()
    const days = z.object({ day: z.string(), at: z.date(), deep: z.object({ a: z.array(z.number()) }) })
    expect(await read('days.parquet', fs.readFileSync(file), days)).toEqual([
      { day: '2025-03-01', at: new Date('2025-03-01T00:00:00Z'), deep: { a: [1] } },
    ])
  })

  test('that is cut short is refused', async () => {
    await expect(read('bad.parquet', '')).rejects.toMatchObject({
      message: expect.stringMatching(/^bad\.parquet of raw\/orders is empty: it has 0 bytes/),
      hint: expect.stringContaining('even if there are no rows'),
    })
    await expect(read('bad.parquet', 'id,amount\n')).rejects.toMatchObject({
      message: 'bad.parquet of raw/orders is not Parquet: it begins with "id,a"',
      hint: expect.stringContaining('.csv'),
    })
    for (const cut of ['PAR1', 'PAR1 the rows, and then the program ended'])
      await expect(read('bad.parquet', cut)).rejects.toThrow('bad.parquet of raw/orders ends before its footer')
    await expect(read('bad.parquet', `PAR1${'x'.repeat(40)}PAR1`)).rejects.toThrow(
      /^bad\.parquet of raw\/orders is Parquet that cannot be read: /,
    )
  })
})

test('a file that is not there, or is a folder, is refused with its name', async () => {
  fs.mkdirSync(path.join(folder, 'folder.csv'))
  for (const name of ['none.csv', 'folder.csv'])
    await expect(
      Array.fromAsync(readRowsFile({ path: path.join(folder, name), assetKey: 'raw/orders', name, fields: undefined })),
    ).rejects.toThrow(`wrote no file ${name}`)
})

test('text that is not UTF-8 is refused', async () => {
  for (const name of ['bad.csv', 'bad.ndjson']) await expect(read(name, gzipSync('id'))).rejects.toThrow(`${name} is not UTF-8`)
})

test.each([
  ['2025-03-01', '2025-03-01T00:00:00.000Z'],
  ['2025-03-01T09:00', '2025-03-01T09:00:00.000Z'],
  ['2025-03-01 09:00:05.1', '2025-03-01T09:00:05.100Z'],
  ['2025-03-01T09:00:05+05:30', '2025-03-01T03:30:05.000Z'],
  ['2025-03-01 09:00:05-0800', '2025-03-01T17:00:05.000Z'],
])('the time %s is %s, wherever the worker is', (text, iso) => {
  expect(timeOf(text)).toEqual(new Date(iso))
})
