import { expect, test } from 'vitest'
import { Channel } from './channel.ts'

test('what is pushed is taken in order, before and after it is waited for, and nothing after the end', async () => {
  const channel = new Channel<number>()
  channel.push(1)
  const taken: number[] = []
  const taking = (async () => {
    for await (const value of channel) taken.push(value)
  })()
  await new Promise((resolve) => setImmediate(resolve))
  expect(taken).toEqual([1])
  channel.push(2)
  channel.push(3)
  channel.close()
  channel.push(4)
  await taking
  expect(taken).toEqual([1, 2, 3])
})
