import { itemAt } from '../lib/collections/item-at.ts'
import { ServoError } from '../lib/error.ts'

/** As many tasks or assets as one event holds. */
const MAX_ITEMS = 2_000
/** An event may have 1 MiB; the rest is for its envelope and for defaults that are filled in when it is checked. */
const MAX_BYTES = 900_000

/** Cuts a list into parts that each fit into one event. `texts` are the items as they will be stored. */
export function inParts<T>(items: readonly T[], texts: readonly string[], nameOf: (item: T) => string): T[][] {
  const parts = new Parts<T>()
  for (const [index, item] of items.entries()) parts.add(item, itemAt(texts, index), nameOf)
  return parts.list
}

/** Parts that fill up one after the other, so that the stored texts need not be kept. */
export class Parts<T> {
  readonly list: T[][] = []
  #size = Number.POSITIVE_INFINITY

  add(item: T, text: string, nameOf: (item: T) => string): void {
    const bytes = Buffer.byteLength(text)
    if (bytes > MAX_BYTES) {
      throw new ServoError(
        'invalid',
        'too_large',
        `${nameOf(item)} takes ${bytes} bytes, more than the ${MAX_BYTES} of an event`,
        { hint: 'Select fewer partitions at a time, or make its declaration smaller.' },
      )
    }
    if (this.#size + bytes > MAX_BYTES || (this.list.at(-1)?.length ?? 0) === MAX_ITEMS) {
      this.list.push([])
      this.#size = 0
    }
    this.list.at(-1)?.push(item)
    this.#size += bytes
  }
}
