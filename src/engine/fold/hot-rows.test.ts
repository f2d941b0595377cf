import { expect, test } from 'vitest'
import { col } from '../../model/column.ts'
import { defineTable, type Table } from '../../model/table.ts'
import { HotTable } from './hot-rows.ts'

const table = defineTable({
  name: 'samples',
  doc: 'For the tests.',
  key: ['owner', 'id'],
  storage: { kind: 'hot' },
  columns: { owner: col.string('Text.'), id: col.string('Text.') },
}) as Table

test('rows of several owners leave memory together, and changes of the others are kept', () => {
  const hot = new HotTable(table)
  const row = (owner: string, id: string) => ({ owner, id, row_version: 'v' })
  hot.load(row('stays', 'stored'))
  const changed = hot.insert(row('stays', 'changed'))
  hot.watch()
  const [a, b] = [hot.insert(row('ended', 'a')), hot.insert(row('ended', 'b'))]
  const other = hot.insert(row('other', 'a'))
  hot.edit('stays', 'changed')
  expect(hot.unloadUnder(['ended', 'unknown', 'other'])).toEqual(
    new Map([
      ['ended', [a, b]],
      ['other', [other]],
    ]),
  )
  expect([...hot.all()].map(({ id }) => id)).toEqual(['stored', 'changed'])
  expect(hot.size).toBe(2)
  expect([...hot.dirty]).toEqual([changed])
  expect([...hot.takeChanged()]).toEqual([changed])
  expect(hot.get('ended', 'a')).toBeUndefined()
})
