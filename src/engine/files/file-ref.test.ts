import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { fileRef, getChecked } from './file-ref.ts'

const bytes = new TextEncoder().encode('what was written')

test('a file that is what was written is handed out', async () => {
  const store = memoryStore()
  await store.create('runs/base/1.parquet', bytes)
  expect(await getChecked(store, fileRef('runs/base/1.parquet', bytes, 3))).toEqual(bytes)
})

test('[S5] a file with one bit changed is refused by name, with the way out', async () => {
  const store = memoryStore()
  const changed = Uint8Array.from(bytes)
  changed[3]! ^= 1
  await store.create('runs/base/1.parquet', changed)
  const error = await getChecked(store, fileRef('runs/base/1.parquet', bytes, 3)).catch((e) => e)
  expect(error).toMatchObject({ kind: 'corrupt', code: 'checksum_mismatch', facts: { path: 'runs/base/1.parquet' } })
  expect(error.message).toContain('runs/base/1.parquet')
  expect(error.hint).toContain('servo rebuild')
})

test('a file that was cut short says how long it is and should be', async () => {
  const store = memoryStore()
  await store.create('a', bytes.subarray(0, 5))
  await expect(getChecked(store, fileRef('a', bytes, 3))).rejects.toThrow(/5 bytes instead of 16/)
})

test('a file that is gone is told from one that is damaged', async () => {
  await expect(getChecked(memoryStore(), fileRef('a', bytes, 3))).rejects.toMatchObject({
    kind: 'corrupt',
    code: 'file_missing',
  })
})
