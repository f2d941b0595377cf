import { comesAfter, type ListPlace } from '../../engine/history/list-history.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import { toIso, toMs } from '../../lib/time.ts'
import type { Columns } from '../../model/column.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { Knowledge } from './knowledge.ts'
import { badCursor } from './page.ts'

/** Rows of a cold table that belong together, such as the evaluations of one sensor. */
export interface NewestList<C extends Columns> {
  readonly table: Table<C>
  /** The column that says when, and the one that tells rows of the list apart. */
  readonly at: keyof C & string
  readonly id: keyof C & string
  /** Of rows that stand for a span of time: until when, in SQL and of a row. */
  readonly end?: { readonly sql: string; readonly of: (row: Readonly<RowOf<C>>) => number | null }
  placeOf(row: Readonly<RowOf<C>>): { at: number | null; id: string }
  keyOf(id: string): KeyPart[]
  /** True for rows that are in the list or might come and go, such as all of one sensor. */
  owns(row: Readonly<RowOf<C>>): boolean
  /** True for those that are in the list now; `where` is the same in SQL, with `owns`. */
  has(row: Readonly<RowOf<C>>): boolean
  readonly where: readonly string[]
}

interface NewestQuery {
  readonly limit: number
  readonly cursor?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
}

/** A page of a list, the newest first, including what is not published yet. */
export async function newestPage<C extends Columns>(
  known: Pick<Knowledge, 'coldRows' | 'sql'>,
  list: NewestList<C>,
  { limit, cursor, since, until }: NewestQuery,
): Promise<{ rows: RowOf<C>[]; next_cursor: string | null }> {
  const after = cursor === undefined ? undefined : placeOfCursor(cursor)
  const place = (row: Readonly<RowOf<C>>): ListPlace => {
    const { at, id } = list.placeOf(row)
    return { at: at ?? 0, id }
  }
  const isAsked = (row: Readonly<RowOf<C>>): boolean => {
    const here = place(row)
    return (
      list.owns(row) &&
      list.has(row) &&
      (since === undefined || (list.end?.of(row) ?? here.at) >= toMs(since)) &&
      (until === undefined || here.at < toMs(until)) &&
      (after === undefined || comesAfter(after, here))
    )
  }
  const cold = known.coldRows(list.table)
  const recent = [...cold.recent()].filter((row) => list.owns(row)).map((row) => place(row).id)
  const conditions = [
    ...list.where,
    since !== undefined && `${list.end?.sql ?? list.at} >= ${moment(toMs(since))}`,
    until !== undefined && `${list.at} < ${moment(toMs(until))}`,
    after !== undefined && `${list.at} <= ${moment(after.at)}`,
  ].filter((one) => one !== false)
  // A row that changed since it was published is looked at again, and may drop out: so many more are asked for.
  const most = limit + 1 + recent.length
  const rest = `where ${conditions.join(' and ')} order by ${list.at} desc, ${list.id} desc limit ${most}`
  const published = await known.sql(`select ${list.id} as found from ${list.table.name} ${rest}`)
  const ids = new Set([...recent, ...published.map(({ found }) => String(found))])
  const rows = (await cold.lookup([...ids].map((id) => list.keyOf(id)))).filter((row) => row !== undefined)
  const sorted = rows.filter(isAsked).sort((a, b) => (comesAfter(place(a), place(b)) ? -1 : 1))
  const page = sorted.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, next_cursor: last === undefined || sorted.length <= limit ? null : cursorOf(place(last)) }
}

const moment = (at: number): string => `${quoteText(toIso(at))}::timestamptz`

export const cursorOf = (place: ListPlace): string => Buffer.from(JSON.stringify(place)).toString('base64url')

/** A day that no list reaches: later moments cannot be written as text. */
const LAST_MOMENT = Date.UTC(9999, 11, 31)

export function placeOfCursor(cursor: string): ListPlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof place === 'object' && place !== null && 'at' in place && 'id' in place) {
      const { at, id } = place
      if (typeof at === 'number' && Number.isSafeInteger(at) && at >= 0 && at <= LAST_MOMENT && typeof id === 'string')
        return { at, id }
    }
  } catch {}
  throw badCursor()
}
