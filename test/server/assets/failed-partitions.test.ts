import { expect, test } from 'vitest'
import type { AssetDetail } from '../../../src/api/asset-contract.ts'
import { shownAsset } from '../../../src/cli/show-asset.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { Assets } from '../../../src/server/workspace/assets.ts'
import { knowledgeOf } from '../../../src/server/workspace/knowledge.ts'
import { Statuses } from '../../../src/server/workspace/status/statuses.ts'
import { statusSource } from '../../../src/server/workspace/workspace.ts'
import { failure, World } from '../world.ts'

const partitions = { type: 'keys', keys: ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'] }
const found = (ok: boolean) => ({
  checks: [{ name: 'positive', ok, severity: 'error' as const, metadata: { message: 'found -1' } }],
})
const lines = (body: AssetDetail): string => shownAsset(body).join('\n')

test('assets show names the partitions whose last attempt failed and what their checks found, though another succeeded since', async () => {
  let broken = ['a', 'c']
  const world = await World.open({
    script: ({ partition }) => {
      const key = partition?.key ?? ''
      if (!broken.includes(key)) return { result: { outcome: 'SUCCEEDED', output: found(true) } }
      const failed = failure({ message: 'the shop is shut', retryable: false })
      return { result: key === 'c' ? failed : { ...failed, output: found(false) } }
    },
  })
  await world.define({ chk: { partitions, checks: [{ name: 'positive', severity: 'error' }] } })
  const get = (): Promise<AssetDetail> => {
    const known = knowledgeOf(world.components, world.orchestrator)
    return new Assets(known, new Statuses(statusSource(known))).get('chk')
  }
  const run = async (...keys: string[]): Promise<string> => {
    const id = await world.request(keys.join(), 'chk', { partitions: keys })
    await world.clock.advance(SECOND_MS)
    return id
  }
  const run_id = await run('a', 'c')
  await run('b')
  const detail = await get()
  expect(detail).toMatchObject({
    last_checks: { partition_key: 'b', checks: [{ ok: true }] },
    failed_partitions: {
      count: 2,
      newest: [
        { partition_key: 'c', run_id, error_message: 'the shop is shut', checks: [] },
        { partition_key: 'a', run_id, checks: [{ name: 'positive', ok: false }] },
      ],
    },
  })
  expect(lines(detail)).toContain(
    'the last attempt failed for 2 partitions\n  c  the shop is shut\n  a  check positive failed: found -1',
  )

  broken = partitions.keys
  await run(...broken)
  const all = lines(await get())
  expect(all).toContain('the last attempt failed for 8 partitions\n  h  check positive failed: found -1\n')
  expect(all).toContain('\n  d  check positive failed: found -1\n  and 3 more: servo partitions list chk --status failed')

  broken = []
  await run('a..h')
  expect(lines(await get())).not.toContain('failed')
})
