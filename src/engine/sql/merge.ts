import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import type { MergeGroup, PickedBy, Table } from '../../model/table.ts'
import { firstOfKey, mergePlan } from '../fold/row-merge.ts'
import { columnList, onKeys } from './text.ts'

/*
 * The merge of cold rows by rule, as in row-merge.ts and to the same result: `merge.test.ts` compares the two. The
 * rule is data, so both only carry it out.
 */

/**
 * The rows of several files, merged by key. Only keys that are in more than one file are grouped: most
 * are not, and grouping costs several times what reading does. Joins instead of anti- and semi-joins let a condition on
 * the key reach every scan.
 */
export function mergedQuery(table: Table, versions: string): string {
  const columns = columnList(Object.keys(table.stored), 's')
  const keys = columnList(table.key)
  const repeated = `(SELECT ${keys} FROM ${versions} GROUP BY ALL HAVING count(*) > 1)`
  const single = `SELECT ${columns} FROM ${versions} AS s LEFT JOIN ${repeated} AS n ON ${onKeys(table)} WHERE n.${quoteName(firstOfKey(table))} IS NULL`
  const several = `(SELECT ${columns} FROM ${versions} AS s JOIN ${repeated} AS n ON ${onKeys(table)})`
  return `${single}\nUNION ALL\n${groupedQuery(table, several)}`
}

/** One row per key: each group of columns from the row that wins it. */
function groupedQuery(table: Table, rows: string): string {
  const groups = groupsOf(table)
  const rankOf = new Map<string, string>()
  const ranks = groups.map((group, i) => {
    // No column can have this name: those are snake_case.
    const rank = quoteName(`servo rank ${i}`)
    for (const name of group.columns) rankOf.set(name, rank)
    return `${rankKey(table, group)} AS ${rank}`
  })
  const columns = Object.keys(table.stored).map((name) => {
    const column = quoteName(name)
    if (table.key.includes(name)) return column
    const rank = rankOf.get(name)
    // Tenant and workspace are the same in every row.
    return `${rank === undefined ? `first(${column})` : `first(${column} ORDER BY ${rank})`} AS ${column}`
  })
  return `SELECT ${columns.join(', ')} FROM (SELECT *, ${ranks.join(', ')} FROM ${rows}) GROUP BY ${columnList(table.key)}`
}

/** The groups of the merge rule; a column that stands alone is a group of its own. */
function groupsOf(table: Table): MergeGroup[] {
  const { groups, alone } = mergePlan(table)
  return [...groups, ...alone.map((name): MergeGroup => ({ pick: 'largest', by: [], columns: [name] }))]
}

/**
 * Sorts first the row that wins the group: by what it is picked by, then by the contents, the larger first. A null
 * sorts last in both. Ties are equal in all columns of the group, so it does not matter which of them is taken.
 */
function rankKey(table: Table, group: MergeGroup): string {
  const picked = group.by.flatMap((name) =>
    orderTerms(table, name).map((term) => [term, group.pick === 'largest' ? 'DESC' : 'ASC']),
  )
  // Of two columns in the place of one, the one that was not looked at may differ still.
  const contents = group.columns.filter((name) => !group.by.includes(name))
  const tied = contents.flatMap((name) => orderTerms(table, name).map((term) => [term, 'DESC']))
  return `create_sort_key(${[...picked, ...tied].map(([term, direction]) => `${term}, '${direction} NULLS LAST'`).join(', ')})`
}

/** What to compare, one after the other, to compare a column as JavaScript does. */
function orderTerms(table: Table, name: PickedBy): string[] {
  if (typeof name !== 'string') return [`coalesce(${columnList(name)})`]
  const column = quoteName(name)
  switch (table.stored[name]?.kind) {
    case 'string':
      return [inUtf16Order(column)]
    case 'strings':
    case 'map':
      return [inUtf16Order(`to_json(${column})::VARCHAR`)]
    case 'json':
      return jsonTerms(column)
    default:
      return [column]
  }
}

/**
 * Numbers compare as numbers and text as text; other values compare by canonical text, whose first character separates kinds
 * apart in this order.
 */
function jsonTerms(column: string): string[] {
  const text = `${column}::VARCHAR`
  const kind = `strpos('"-0123456789[ft{', left(${text}, 1))`
  const rank = `CASE WHEN ${kind} BETWEEN 2 AND 12 THEN 2 ELSE ${kind} END`
  const number = `CASE WHEN ${kind} BETWEEN 2 AND 12 THEN ${text}::DOUBLE WHEN ${column} IS NOT NULL THEN 0 END`
  const contents = `CASE WHEN ${kind} = 1 THEN ${column} ->> '$' ELSE ${text} END`
  return [rank, number, inUtf16Order(contents)]
}

/** Larger than any other character. */
const LAST = 'chr(1114111)'

/**
 * Text that sorts by its bytes as the original does by UTF-16 code unit, which is JavaScript's order. The two disagree
 * only about characters beyond U+FFFF against U+E000 to U+FFFF: the latter are moved behind the former. ASCII, which is
 * nearly everything, is left alone.
 */
function inUtf16Order(text: string): string {
  const escaped = `replace(${text}, ${LAST}, ${LAST} || chr(1))`
  const moved = `regexp_replace(${escaped}, ${quoteText('[\\x{E000}-\\x{FFFF}]')}, ${LAST} || ${quoteText('\\0')}, 'g')`
  return `CASE WHEN strlen(${text}) = length(${text}) THEN ${text} ELSE ${moved} END`
}
