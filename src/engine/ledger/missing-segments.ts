import type { Paths } from '../paths.ts'
import type { Damage } from './read-segment.ts'
import type { Gap } from './sequence.ts'

/**
 * Gaps in words, for people, except for those that are accounted for: a segment that is there and cannot be read leaves a gap too, and so
 * does one that is known by name to be missing.
 */
export function missingSegments(paths: Paths, gaps: readonly Gap[], accountedFor: readonly string[]): Damage[] {
  return gaps.flatMap((gap) => {
    const { writer, first, last, names, after = '', before = '~' } = gap
    // The names of a writer grow, so the missing ones lie between their neighbours.
    const known = accountedFor.filter((ulid) => names.includes(ulid) || (after < ulid && ulid < before))
    if (known.length > last - first) return []
    const [name] = names
    const path = name === undefined ? `${paths.ledger}#${writer}-${first}` : paths.segment(name)
    return [{ path, message: describe(paths, gap) }]
  })
}

function describe(paths: Paths, { writer, first, last, names, after, before }: Gap): string {
  const which = first === last ? `segment ${first}` : `segments ${first} to ${last}`
  const where = names.length === 0 ? paths.ledger : names.map((name) => paths.segment(name)).join(', ')
  const around = [after && `after ${after}`, before && `before ${before}`].filter(Boolean).join(' and ')
  const place = around === '' ? '' : `, which came ${around}`
  return `${where}: ${which} of the writer ${writer} ${first === last ? 'is' : 'are'} missing${place}`
}
