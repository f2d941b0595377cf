/** The item at an index that must exist. Without this check, the hole would show up much later, as NaN or `undefined` in a text. */
export function itemAt<T>(items: readonly T[], index: number): T {
  const item = items[index]
  if (item === undefined) throw new RangeError(`there is no position ${index} among ${items.length}`)
  return item
}
