/** The item at an index that must be there. Without it the hole would show up much later, as NaN or as text without a meaning. */
export function itemAt<T>(items: readonly T[], index: number): T {
  const item = items[index]
  if (item === undefined) throw new RangeError(`there is no position ${index} among ${items.length}`)
  return item
}
