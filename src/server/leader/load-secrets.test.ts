import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { memorySecrets } from '../../adapters/memory/secrets.ts'
import type { Secrets } from '../../ports/secrets.ts'
import { loadSecrets } from './load-secrets.ts'

const scope = { tenant_id: 't', workspace_id: 'w' }
const random = (length: number): Uint8Array => randomBytes(length)
const prefix = 'tenant=t/workspace=w/secrets/'

test('a workspace without secrets gets its first, and keeps them', async () => {
  const [secrets, store] = [memorySecrets(), memoryStore()]
  const first = await loadSecrets({ secrets, store, scope, random })
  expect(first).toMatchObject({ made: 'first', secrets: { run_ids: { id: 'local-1' }, task_tokens: { id: 'local-1' } } })
  const values = [first.secrets.run_ids.value, first.secrets.task_tokens.value, first.secrets.api_token]
  expect(new Set(values).size).toBe(3)
  expect(await loadSecrets({ secrets, store, scope, random })).toEqual({ ...first, made: undefined })
})

test('secrets that were deleted are made anew under an id that none had before', async () => {
  const store = memoryStore()
  for (const [id, made] of [
    ['local-1', 'first'],
    ['local-2', 'new'],
    ['local-3', 'new'],
  ]) {
    const loaded = await loadSecrets({ secrets: memorySecrets(), store, scope, random })
    expect(loaded).toMatchObject({ made, secrets: { run_ids: { id }, task_tokens: { id } } })
  }
})

test('secrets that were restored are accepted, though newer ones were made meanwhile', async () => {
  const [old, store] = [memorySecrets(), memoryStore()]
  const { secrets } = await loadSecrets({ secrets: old, store, scope, random })
  await loadSecrets({ secrets: memorySecrets(), store, scope, random })
  expect(await loadSecrets({ secrets: old, store, scope, random })).toEqual({ secrets, made: undefined })
})

test('a secret that was altered is refused, and the error does not repeat it', async () => {
  const [kept, store] = [memorySecrets(), memoryStore()]
  const { secrets } = await loadSecrets({ secrets: kept, store, scope, random })
  for (const purpose of ['run_ids', 'task_tokens'] as const) {
    const value = 'another secret of enough length'
    const altered: Secrets = { ...kept, read: async () => ({ ...secrets, [purpose]: { id: 'local-1', value } }) }
    const error = await loadSecrets({ secrets: altered, store, scope, random }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ kind: 'corrupt', code: 'secrets_altered', facts: { purpose, id: 'local-1' } })
    expect(inspect(error)).not.toContain(value)
  }
})

test('what the workspace remembers does not tell the secrets', async () => {
  const [secrets, store] = [memorySecrets(), memoryStore()]
  const { secrets: loaded } = await loadSecrets({ secrets, store, scope, random })
  const remembered: string[] = []
  for await (const { path } of store.list('')) remembered.push(path, Buffer.from((await store.get(path))!).toString())
  expect(remembered.filter((_, i) => i % 2 === 0)).toEqual([
    `${prefix}run_ids-local-1.json`,
    `${prefix}task_tokens-local-1.json`,
  ])
  for (const value of [loaded.run_ids.value, loaded.task_tokens.value, loaded.api_token])
    expect(remembered.join('\n')).not.toContain(value)
})

test('secrets that cannot be read are made by nobody', async () => {
  const outage = new Error('EIO')
  const secrets: Secrets = {
    read: async () => {
      throw outage
    },
    create: async () => {
      throw new Error('nobody asked for new ones')
    },
  }
  await expect(loadSecrets({ secrets, store: memoryStore(), scope, random })).rejects.toBe(outage)
})
