/** Does something so many times, so many at a time, and says how long each took. */
export async function inFlight(count: number, atATime: number, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = []
  let begun = 0
  const one = async (): Promise<void> => {
    while (begun < count) {
      begun += 1
      const start = performance.now()
      await work()
      times.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: atATime }, one))
  return times
}
