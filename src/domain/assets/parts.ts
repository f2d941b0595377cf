import { ServoError } from '../../lib/error.ts'

/** As many tasks or assets as one event holds. */
const MAX_ITEMS = 2_000
/** An event may have 1 MiB; the rest is for its envelope and for defaults that are filled in when it is checked. */
const MAX_BYTES = 900_000

/** Cuts a list into parts that each fit into one event. `texts` are the items as they will be stored. */
export function inParts<T>(items: readonly T[], texts: readonly string[], nameOf: (item: T) => string): T[][] {
  const parts: T[][] = []
  let size = Number.POSITIVE_INFINITY
  for (const [index, item] of items.entries()) {
    const bytes = Buffer.byteLength(texts[index] as string)
    if (bytes > MAX_BYTES) {
      throw new ServoError(
        'invalid',
        'too_large',
        `${nameOf(item)} takes ${bytes} bytes, more than the ${MAX_BYTES} of an event`,
        {
          hint: 'Select fewer partitions at once, or make its declaration smaller.',
        },
      )
    }
    if (size + bytes > MAX_BYTES || (parts.at(-1)?.length ?? 0) === MAX_ITEMS) {
      parts.push([])
      size = 0
    }
    parts.at(-1)?.push(item)
    size += bytes
  }
  return parts
}
