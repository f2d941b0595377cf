import { expect, test } from 'vitest'
import { importWithin } from './import-within.ts'

const never = (): Promise<object> => new Promise(() => undefined)

test('a module that never settles is given up, and before that it is said once that it takes long', async () => {
  const said: string[] = []
  const given = await importWithin(never, { slowMs: 5, maxMs: 30, onSlow: () => said.push('slow') })
  expect(given).toMatchObject({ why: 'too_long', afterMs: 30 })
  expect(said).toEqual(['slow'])
})

test('a module that can never settle is given up at once', async () => {
  const before = process.listenerCount('beforeExit')
  const giving = importWithin(never, { onSlow: () => undefined })
  process.emit('beforeExit', 0)
  expect(await giving).toMatchObject({ why: 'never' })
  expect(process.listenerCount('beforeExit')).toBe(before)
})

test('a module that loads, or throws, in time is as if nobody watched', async () => {
  const limits = { onSlow: () => undefined }
  expect(await importWithin(async () => ({ a: 1 }), limits)).toEqual({ a: 1 })
  await expect(importWithin(() => Promise.reject(new Error('no database')), limits)).rejects.toThrow('no database')
})
