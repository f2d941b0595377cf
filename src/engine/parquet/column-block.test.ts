import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable, type Table } from '../../model/table.ts'
import { fileRef } from '../files/file-ref.ts'
import { sortedFileRef } from '../sorted/index-footer.ts'
import { encodeSortedFile, SortedFileReader } from '../sorted/sorted-file.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }
const seed = Number(process.env['SEED'] ?? Date.now())

const shape = {
  name: 'places',
  doc: 'For the tests.',
  key: ['country', 'city'],
  storage: { kind: 'cold', merge: [] },
  columns: {
    country: col.string('Country.'),
    city: col.string('City.'),
    seen_at: col.optional(col.timestamp('When.')),
    colour: col.optional(col.string('One of a few.')),
    note: col.optional(col.string('Anything.')),
    later: col.optional(col.timestamp('Only in newer files.')),
  },
} as const
const places = defineTable(shape)
/** Files of a table with a digest have moments as differences; older files have not. */
const digested = defineTable({ ...shape, digest: ['seen_at'] })

async function stored(rows: readonly AnyRow[], table: Table = places) {
  const store = memoryStore()
  const bytes = encodeSortedFile(table, rows, scope)
  await store.create('sorted.parquet', bytes)
  return {
    store,
    reader: new SortedFileReader(store),
    ref: sortedFileRef(fileRef('sorted.parquet', bytes, rows.length), bytes, 0),
  }
}

/** The rows of one country, put together from columns. */
async function readBack({ reader, ref }: Awaited<ReturnType<typeof stored>>, country: string): Promise<AnyRow[]> {
  const rows: AnyRow[] = []
  for await (const { block, from, to } of reader.columns(places, ref, country)) {
    const cities = block.texts('city')
    const seen = block.times('seen_at')
    const later = block.times('later')
    const [colours, notes] = [block.words('colour'), block.words('note')]
    for (let i = from; i < to; i++) {
      rows.push({
        country,
        city: cities.at(i),
        seen_at: Number.isNaN(seen[i]) ? null : seen[i],
        colour: colours.values[colours.codes[i] as number] ?? null,
        note: notes.values[notes.codes[i] as number] ?? null,
        later: Number.isNaN(later[i]) ? null : later[i],
      })
    }
  }
  return rows
}

const withoutVersion = ({ row_version: _, ...row }: AnyRow): AnyRow => row

describe('columns of a sorted file', () => {
  test(`say what its rows say, whatever is null and whatever repeats (seed ${seed})`, async () => {
    const row = fc.record({
      country: fc.constantFrom('at', 'de', 'fr', 'it'),
      city: fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
      seen_at: fc.option(fc.integer({ min: 1, max: 4e12 })),
      colour: fc.option(fc.constantFrom('red', 'green', '')),
      note: fc.option(fc.string({ unit: 'grapheme', maxLength: 20 })),
      later: fc.option(fc.constantFrom(1, 4_000_000_000_000)),
    })
    const byKey = (a: AnyRow, b: AnyRow): number =>
      a['country'] !== b['country'] ? (a['country'] < b['country'] ? -1 : 1) : a['city'] < b['city'] ? -1 : 1
    const rows = fc
      .uniqueArray(row, { selector: ({ country, city }) => `${country}\0${city}`, maxLength: 40 })
      .map((list) => list.map((each) => ({ ...each, row_version: 'v' })).sort(byKey))
    await fc.assert(
      fc.asyncProperty(rows, async (written) => {
        for (const sorted of [await stored(written), await stored(written, digested)]) {
          for (const country of ['at', 'de', 'fr', 'it', 'zz']) {
            const own = written.filter((each) => each.country === country)
            expect(await readBack(sorted, country)).toEqual(own.map(withoutVersion))
          }
        }
      }),
      { seed, numRuns: 60 },
    )
  })

  test('begin and end in the middle of row groups', async () => {
    const rows = Array.from({ length: 17_000 }, (_, i) => ({
      country: i < 7_001 ? 'at' : i < 15_500 ? 'de' : 'fr',
      city: String(i).padStart(6, '0'),
      seen_at: i % 3 === 0 ? null : 1_736_935_200_000 + i,
      colour: i % 2 === 0 ? 'red' : null,
      note: `${i}`,
      later: i < 12_000 ? 1_736_935_200_000 + (i % 5) : i < 16_000 ? 1_736_935_200_000 : null,
      row_version: 'v',
    }))
    for (const sorted of [await stored(rows), await stored(rows, digested)]) {
      for (const country of ['at', 'de', 'fr']) {
        expect(await readBack(sorted, country)).toEqual(rows.filter((row) => row.country === country).map(withoutVersion))
      }
    }
  })

  test('are in blocks of their own where there are enough of them', async () => {
    const counts = { at: 7_001, be: 999, cz: 2, de: 5_000, fr: 1_500 }
    const rows = Object.entries(counts).flatMap(([country, count]) =>
      Array.from({ length: count }, (_, i) => ({ country, city: String(i).padStart(5, '0'), row_version: 'v' })),
    )
    const { reader, ref } = await stored(rows, digested)
    const { groups } = await reader.describe(digested, ref)
    expect(groups.map(({ first_key, digest }) => [...first_key, digest?.last_key?.join(), digest?.rows])).toEqual([
      ['at', '00000', 'at,04999', 5_000],
      ['at', '05000', 'at,07000', 2_001],
      ['be', '00000', 'cz,00001', 1_001],
      ['de', '00000', 'de,04999', 5_000],
      ['fr', '00000', 'fr,01499', 1_500],
    ])
    const blocksOf = async (country: string): Promise<unknown[]> => {
      const blocks: unknown[] = []
      for await (const { at, from, to, ends } of reader.columns(digested, ref, country)) {
        blocks.push([at, from, to, ends && (ends.last ?? ends.next)?.join()])
      }
      return blocks
    }
    expect(await blocksOf('at')).toEqual([
      [0, 0, 5_000, 'at,05000'],
      [1, 0, 2_001, 'at,07000'],
    ])
    expect(await blocksOf('be')).toEqual([[2, 0, 999, undefined]])
    expect(await blocksOf('cz')).toEqual([[2, 999, 1_001, undefined]])
    expect(await blocksOf('de')).toEqual([[3, 0, 5_000, 'de,04999']])
    expect(await blocksOf('fr')).toEqual([[4, 0, 1_500, 'fr,01499']])
    expect(await blocksOf('bz')).toEqual([])
  })

  test('may be megabytes', async () => {
    const rows = Array.from({ length: 4_000 }, (_, i) => ({
      ...{ country: 'at', city: `${i}`.padStart(600, '0'), seen_at: i + 1, colour: null, note: null, later: null },
      row_version: 'v',
    }))
    expect(await readBack(await stored(rows, digested), 'at')).toEqual(rows.map(withoutVersion))
  })

  test('of a damaged row group are refused', async () => {
    const sorted = await stored([{ country: 'at', city: 'wien', seen_at: 5, colour: 'red', note: 'x', row_version: 'v' }])
    const bytes = (await sorted.store.get('sorted.parquet')) as Uint8Array
    bytes[40] = (bytes[40] as number) ^ 1
    const broken = memoryStore()
    await broken.create('sorted.parquet', bytes)
    await expect(readBack({ ...sorted, reader: new SortedFileReader(broken) }, 'at')).rejects.toThrow(/damaged/)
  })
})
