import { expect, test } from 'vitest'
import { memorySecrets } from '../../src/adapters/memory/secrets.ts'
import { loadSecrets } from '../../src/server/leader/load-secrets.ts'
import { memoryComponents } from '../../src/testing/memory-components.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

test('secrets are made once, and the same afterwards', async () => {
  const components = memoryComponents(new VirtualClock())
  const first = await loadSecrets(components)
  expect(first).toMatchObject({ run_ids: { id: 'local-1' }, task_tokens: { id: 'local-1' }, replaced: false })
  expect(await loadSecrets(components)).toEqual(first)
})

test('secrets that are gone are replaced under a new id, and whoever leads is told', async () => {
  const components = memoryComponents(new VirtualClock())
  const first = await loadSecrets(components)
  const later = { ...components, secrets: memorySecrets() }
  const second = await loadSecrets(later)
  expect(second).toMatchObject({ run_ids: { id: 'local-2' }, task_tokens: { id: 'local-2' }, replaced: true })
  expect(second.run_ids.value).not.toBe(first.run_ids.value)
  expect(await loadSecrets(later)).toEqual({ ...second, replaced: false })
})

test('a secret that has another value under the same id is refused', async () => {
  const components = memoryComponents(new VirtualClock())
  const { replaced: _, ...kept } = await loadSecrets(components)
  for (const purpose of ['run_ids', 'task_tokens'] as const) {
    const altered = memorySecrets()
    await altered.create({ ...kept, [purpose]: { ...kept[purpose], value: 'something else, long enough' } })
    const load = loadSecrets({ ...components, secrets: altered })
    await expect(load).rejects.toMatchObject({ kind: 'corrupt', code: 'secrets_altered', facts: { purpose } })
  }
})
