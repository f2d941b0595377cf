import { describe, expect, test } from 'vitest'
import type { TenantSecret } from '../../src/domain/runs/identity.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { knownTo } from '../../src/server/server.ts'
import { RunReader } from '../../src/server/workspace/run-reader.ts'
import { type NewRun, Runs } from '../../src/server/workspace/runs.ts'
import { scope, World } from './world.ts'

const first = { id: 'secret-1', value: 'of the first machine' }
const replaced = { id: 'secret-2', value: 'made anew when the first was gone' }
const request: NewRun = { selection: ['*'], key: 'nightly', user: 'ada' }

function runsOf({ orchestrator, components }: World, secret: TenantSecret): Runs {
  const known = knownTo(orchestrator, components)
  const reader = new RunReader(() => known.rows(), known.sql)
  return new Runs({ known, reader, scope, secret: () => secret, mintId: () => 'minted' })
}

describe('a run key that was used before the secret of run ids was replaced', () => {
  test('[T2] names the run that it made, and makes no other', async () => {
    const world = await World.open()
    await world.define({ a: [] })
    const made = await runsOf(world, first).request(request)
    expect(made.created).toBe(true)
    const again = await runsOf(world, replaced).request(request)
    expect(again).toMatchObject({ run_id: made.run_id, created: false })
    expect(world.run(made.run_id)).toBeDefined()
  })

  test('[T2] does so too when its run is history and its key is in a file', async () => {
    const world = await World.open({ options: { compaction: { limits: { max_count: 1 } } } })
    await world.define({ a: [] })
    const made = await runsOf(world, first).request(request)
    await world.clock.advance(SECOND_MS)
    await world.orchestrator.publish()
    // A run that has ended is sealed with the next base.
    await world.define({ a: [], b: [] })
    await world.orchestrator.publish()
    await world.crash()
    expect(world.run(made.run_id)).toBeUndefined()
    const again = await runsOf(world, replaced).request(request)
    expect(again).toMatchObject({ run_id: made.run_id, created: false })
  })

  test('used for other work is refused with the name of the run that has it', async () => {
    const world = await World.open()
    await world.define({ a: [], b: [] })
    const made = await runsOf(world, first).request({ ...request, selection: ['a'] })
    await expect(runsOf(world, replaced).request({ ...request, selection: ['b'] })).rejects.toMatchObject({
      code: 'run_key_conflict',
      facts: { run_id: made.run_id },
    })
  })
})
