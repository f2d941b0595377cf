import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { col } from '../../model/column.ts'
import { type AnyRow, defineTable } from '../../model/table.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { fileRef } from '../files/file-ref.ts'
import { compareTuples, keyOf, sortedByKey } from '../fold/row-merge.ts'
import { State } from '../fold/state.ts'
import { ColdStore } from './cold-store.ts'
import { sortedFileRef } from './index-footer.ts'
import { encodeSortedFile } from './sorted-file.ts'

const scope = { tenant_id: 'acme', workspace_id: 'prod' }

const made = defineTable({
  name: 'made',
  doc: 'For the tests.',
  key: ['asset', 'partition', 'number'],
  storage: { kind: 'cold', merge: [{ pick: 'largest', by: ['at'], columns: ['at'] }] },
  // So that a few rows are several row groups.
  groupRows: 4,
  columns: {
    asset: col.string('Asset.'),
    partition: col.string('Partition.'),
    number: col.string('Number.'),
    at: col.optional(col.int('When.')),
    removed: col.optional(col.int('When it was removed.')),
  },
})

const few = (...texts: string[]) => fc.constantFrom(...texts)
const row = fc.record({
  asset: few('a', 'b', 'c'),
  partition: few('', 'eu', 'us'),
  number: few('1', '2', '3', '4', '5', '6', '7', '8', '9'),
  at: fc.option(fc.nat(9)),
  removed: fc.option(fc.nat(9)),
  row_version: few('v1', 'v2'),
})
const rows = fc.array(row, { maxLength: 40 })

test('rows after and before a key are found in order, wherever their versions are: in files, of several row groups, and in memory', async () => {
  const property = fc.asyncProperty(
    fc.array(rows, { maxLength: 3 }),
    rows,
    few('a', 'b', 'c', 'd'),
    few('', 'eu', 'us', 'zz'),
    few('', '3', '5', '~'),
    fc.integer({ min: 1, max: 12 }),
    async (files, memory, asset, partition, number, limit) => {
      const store = memoryStore()
      const refs: SortedFileRef[] = []
      for (const [i, given] of files.entries()) {
        const sorted = sortedByKey(made, given)
        if (sorted.length === 0) continue
        const bytes = encodeSortedFile(made, sorted, scope)
        await store.create(`made/${i}.parquet`, bytes)
        refs.push(sortedFileRef(fileRef(`made/${i}.parquet`, bytes, sorted.length), bytes, 0))
      }
      const state = new State({ tables: [made], events: [] })
      for (const each of memory) state.coldTable(made).merge(each)
      const found = new ColdStore({ store, filesOf: () => refs }).rows(made, state)
      const all: AnyRow[] = sortedByKey(made, [...files.flat(), ...memory])
      const key = [asset, partition, number]
      const after = (start: readonly string[]) =>
        all.filter((each) => each['asset'] === asset && compareTuples(keyOf(made, each), start) > 0).slice(0, limit)
      expect(await found.after(key, limit)).toEqual(after(key))
      expect(await found.after([asset, partition], limit)).toEqual(after([asset, partition]))
      const before = all.filter(
        (each) => compareTuples(keyOf(made, each), [asset, partition]) === 0 && compareTuples(keyOf(made, each), key) < 0,
      )
      expect(await found.before(key, limit)).toEqual(before.toReversed().slice(0, limit))
    },
  )
  await fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 100) })
})
