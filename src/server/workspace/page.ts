import type { PageQuery } from '../../api/request/list-query.ts'
import { countWhile } from '../../lib/collections/binary-search.ts'
import { ServoError } from '../../lib/error.ts'

/** One page of a sorted list. It begins after the last name of the page before, even if names came or went since. */
export function pageOf(
  names: readonly string[],
  { limit, cursor }: PageQuery,
): { names: string[]; next_cursor: string | null } {
  const after = cursor === undefined ? undefined : nameIn(cursor)
  const from = after === undefined ? 0 : countWhile(names.length, (i) => (names[i] ?? '') <= after)
  const page = names.slice(from, from + limit)
  const last = page.at(-1)
  const isEnd = last === undefined || from + limit >= names.length
  return { names: page, next_cursor: isEnd ? null : Buffer.from(last).toString('base64url') }
}

function nameIn(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (Buffer.from(name).toString('base64url') === cursor) return name
  throw badCursor()
}

export const badCursor = (): ServoError =>
  new ServoError('invalid', 'bad_cursor', 'invalid cursor', {
    hint: 'Pass next_cursor of the previous page unchanged, or omit it for the first page.',
    facts: { field: 'cursor' },
  })
