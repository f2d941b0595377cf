import { expect, test } from 'vitest'
import type { AssetDetail } from '../../../src/api/asset-contract.ts'
import { shownAsset } from '../../../src/cli/show-asset.ts'
import { MINUTE_MS, SECOND_MS, toMs } from '../../../src/lib/time.ts'
import { Assets } from '../../../src/server/workspace/assets.ts'
import { knowledgeOf } from '../../../src/server/workspace/knowledge.ts'
import { Statuses } from '../../../src/server/workspace/status/statuses.ts'
import { statusSource, workspaceApi } from '../../../src/server/workspace/workspace.ts'
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

test('assets show and why say since when an asset fails, from the first failure after the last success', async () => {
  let error: string | undefined
  const world = await World.open({
    script: () =>
      error === undefined
        ? { result: { outcome: 'SUCCEEDED', output: {} } }
        : { result: failure({ message: error, retryable: false }) },
  })
  await world.define({ whole: {}, days: { partitions } })
  const known = knowledgeOf(world.components, world.orchestrator)
  const api = workspaceApi(known, {
    runIds: () => {
      throw new Error('no run is requested here')
    },
  })
  const run = async (message?: string): Promise<number> => {
    error = message
    await world.request(String(world.clock.now()), 'whole')
    await world.request(`${world.clock.now()} days`, 'days', { partitions: ['b'] })
    await world.clock.advance(MINUTE_MS)
    return world.clock.now()
  }
  await run('before it was ever made')
  await run()
  const made = await api.assets.get('whole')
  expect(made.last_failure).toBe(null)
  const from = world.clock.now()
  await run('first')
  const to = world.clock.now()
  await run('second')
  await run('third\nand more')
  const { last_failure } = await api.assets.get('whole')
  expect(last_failure).toMatchObject({ error_message: 'third\nand more' })
  const since = toMs(last_failure?.since ?? '')
  expect([since >= from, since <= to]).toEqual([true, true])
  const shown = lines(await api.assets.get('whole'))
  expect(shown).toMatch(/\n {2}failing since +2\d{3}-.*\n {2}error +third\n/)
  expect(lines(await api.assets.get('days'))).toMatch(/\n {2}b {2}third, failing since 2\d{3}-/)
  const { because } = await api.whys.why('asset', 'whole', {})
  expect(because).toContainEqual(
    expect.objectContaining({ code: 'attempt_failed', facts: expect.objectContaining({ since: last_failure?.since }) }),
  )
})
