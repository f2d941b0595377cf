import { expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { copyState } from '../../../src/engine/backup/copy-state.ts'
import { verify } from '../../../src/engine/check/verify.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import { interceptedStore } from '../../engine/intercepted-store.ts'
import { Keeping, keep } from './keeping.ts'

test.each([
  ['list', 'manifests/'],
  ['get', 'ledger/'],
  ['list', 'data/'],
])(
  '[K4] a backup during which values are removed has every value that its ledger keeps: removed at its first %s of %s',
  async (by, folder) => {
    const world = await Keeping.open([{ asset_key: 'a', ...keep(1) }])
    for (let i = 0; i < 3; i++) await world.make('a')
    await world.server.orchestrator.publish()
    let isRemoved = false
    const from = interceptedStore(world.store, async ({ method, path }) => {
      if (isRemoved || method !== by || !path.startsWith(`${world.root}${folder}`)) return
      isRemoved = true
      await world.server.api.retention.collect({}, 'tester')
    })
    const to = memoryStore()
    const copy = async (path: string) => {
      const bytes = await from.get(path)
      if (bytes === undefined) return undefined
      await to.create(path, bytes)
      return { bytes: bytes.length, sha256: sha256(bytes) }
    }
    const { scope } = world.memory
    await copyState({ from, to, scope, prune: true, files: { copy, settle: async () => undefined } })
    expect(isRemoved).toBe(true)
    expect(await world.files()).toEqual(['m3'])
    const checked = await verify({ store: to, scope, registry: orchestration, scratch: memoryStore(), data: true })
    expect(checked.problems).toEqual([])
  },
)
