/** The number of items before the first for which `holds` is false. It must be false for all items after that one. */
export function countWhile(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (holds(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/** The last index whose number is at most n; the numbers ascend, and the first is not above n. Written out, because windows are counted by it. */
export function lastAtMost(numbers: ArrayLike<number>, n: number): number {
  let [low, high] = [0, numbers.length - 1]
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if ((numbers[middle] ?? 0) <= n) low = middle
    else high = middle - 1
  }
  return low
}
