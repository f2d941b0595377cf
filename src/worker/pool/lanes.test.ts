import { expect, test } from 'vitest'
import { Lanes } from './lanes.ts'

/** Acts that end when they are told to, and the order in which they began. */
function acts(lanes: Lanes) {
  const begun: string[] = []
  const ends = new Map<string, PromiseWithResolvers<string>>()
  const start = (lane: string, name: string): Promise<string> => {
    const end = Promise.withResolvers<string>()
    ends.set(name, end)
    return lanes.run(lane, () => {
      begun.push(name)
      return end.promise
    })
  }
  return {
    begun,
    start,
    end: (name: string) => ends.get(name)?.resolve(name),
    fail: (name: string) => ends.get(name)?.reject(new Error(name)),
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('[A38] so many run at a time under each name, and the others wait in order', async () => {
  const { begun, start, end, fail } = acts(new Lanes(2))
  const all = ['a', 'b', 'c', 'd', 'e'].map((name) => start('one', name))
  const other = start('other', 'x')
  await settled()
  expect(begun).toEqual(['a', 'b', 'x'])
  end('b')
  await settled()
  expect(begun).toEqual(['a', 'b', 'x', 'c'])
  fail('a')
  await expect(all[0]).rejects.toThrow('a')
  // One that comes later does not overtake those that wait.
  const last = start('one', 'f')
  await settled()
  expect(begun).toEqual(['a', 'b', 'x', 'c', 'd'])
  for (const name of ['c', 'd', 'e', 'f', 'x']) end(name)
  expect(await Promise.all([...all.slice(1), last, other])).toEqual(['b', 'c', 'd', 'e', 'f', 'x'])
  expect(begun.slice(-2)).toEqual(['e', 'f'])
})
