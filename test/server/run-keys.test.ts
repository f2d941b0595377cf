import { describe, expect, test } from 'vitest'
import type { RunsApi } from '../../src/api/run-contract.ts'
import type { TenantSecret } from '../../src/domain/runs/run-ids.ts'
import type { SourceRef } from '../../src/domain/runs/trigger.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { knowledgeOf } from '../../src/server/workspace/knowledge.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import { workspaceApi } from '../../src/server/workspace/workspace.ts'
import { failure, scope, World } from './world.ts'

const first = { id: 'secret-1', value: 'of the first machine' }
const replaced = { id: 'secret-2', value: 'made anew when the first was gone' }
const request = { select: ['*'], key: 'nightly' }

const runsOf = ({ orchestrator, components }: World, secret: TenantSecret): RunsApi =>
  workspaceApi(knowledgeOf(components, orchestrator), { runIds: () => secret }).runs

const sources: readonly SourceRef[] = [
  { type: 'schedule', schedule_id: 's', tick_id: 't' },
  { type: 'sensor', sensor_id: 's', eval_id: 'e' },
  { type: 'backfill', backfill_id: 'b', chunk_id: 'c', chunk_index: 0 },
  { type: 'rerun', run_id: 'r', request_id: 'again', mode: 'all' },
  { type: 'automation', asset_key: 'a', decision_id: 'd' },
  { type: 'manual', user_id: 'ada', request_id: 'r' },
]
const prefixes = {
  schedule: 'sched',
  sensor: 'sensor:s',
  backfill: 'backfill',
  rerun: 'rerun',
  automation: 'auto',
  manual: 'user',
}

test.each(sources)('[T3] the run keys of a $type are its own: no other source can take one', async (source) => {
  const world = await World.open()
  await world.define({ a: [] })
  const run_key = `${prefixes[source.type]}:x`
  const requestedBy = (by: SourceRef) => runRequested(scope, first, { run_key, asset_selection: ['*'], source: by }).event
  for (const other of sources.filter(({ type }) => type !== source.type))
    await expect(world.orchestrator.submit([requestedBy(other)]), other.type).rejects.toMatchObject({ code: 'bad_payload' })
  const { verdicts } = await world.orchestrator.submit([requestedBy(source)])
  expect(verdicts).not.toContainEqual(expect.objectContaining({ kind: 'ignored' }))
})

describe('a run key that was used before the secret of run ids was replaced', () => {
  test('[T2] names the run that it made, and makes no other', async () => {
    const world = await World.open()
    await world.define({ a: [] })
    const made = await runsOf(world, first).request(request, 'ada')
    expect(made.created).toBe(true)
    const again = await runsOf(world, replaced).request(request, 'ada')
    expect(again).toMatchObject({ run_id: made.run_id, created: false })
    expect(world.run(made.run_id)).toMatchObject({ secret_id: first.id })
  })

  test('[T2] does so too when its run is history and its key is in a file', async () => {
    const world = await World.open({ options: { compaction: { limits: { max_count: 1 } } } })
    await world.define({ a: [] })
    const made = await runsOf(world, first).request(request, 'ada')
    await world.clock.advance(SECOND_MS)
    await world.orchestrator.publish()
    // A run that has ended is sealed with the next base.
    await world.define({ a: [], b: [] })
    await world.orchestrator.publish()
    await world.crash()
    expect(world.run(made.run_id)).toBeUndefined()
    const again = await runsOf(world, replaced).request(request, 'ada')
    expect(again).toMatchObject({ run_id: made.run_id, created: false })
  })

  test('[T1] used for other work is refused with the name of the run that has it', async () => {
    const world = await World.open()
    await world.define({ a: [], b: [] })
    const made = await runsOf(world, first).request({ ...request, select: ['a'] }, 'ada')
    await expect(runsOf(world, replaced).request({ ...request, select: ['b'] }, 'ada')).rejects.toMatchObject({
      code: 'run_key_conflict',
      facts: { run_id: made.run_id },
    })
  })
})

describe('a run key whose run failed', () => {
  const failing = { ...failure({ retryable: false }) }

  test('[A29] asked for again is a rerun of it, one for each run that failed, and the run that succeeds is the answer from then on', async () => {
    let result: object | undefined = failing
    const world = await World.open({ script: () => (result === undefined ? {} : { result: failing }) })
    await world.define({ a: [] })
    const ask = async () => {
      const accepted = await runsOf(world, first).request(request, 'ada')
      await world.clock.advance(10 * SECOND_MS)
      return accepted
    }
    const made = await ask()
    expect(made).toMatchObject({ created: true, rerun_of: null })
    const second = await ask()
    expect(second).toMatchObject({ created: true, rerun_of: made.run_id })
    result = undefined
    const third = await ask()
    expect(third).toMatchObject({ created: true, rerun_of: second.run_id })
    expect(new Set([made, second, third].map(({ run_id }) => run_id)).size).toBe(3)
    expect(await ask()).toMatchObject({ run_id: third.run_id, created: false })
  })

  test('[A29] is found when its run is history and its key is in a file', async () => {
    const world = await World.open({
      options: { compaction: { limits: { max_count: 1 } } },
      script: () => ({ result: failing }),
    })
    await world.define({ a: [] })
    const made = await runsOf(world, first).request(request, 'ada')
    await world.clock.advance(10 * SECOND_MS)
    await world.orchestrator.publish()
    await world.define({ a: [], b: [] })
    await world.orchestrator.publish()
    await world.crash()
    expect(world.run(made.run_id)).toBeUndefined()
    const again = await runsOf(world, replaced).request({ ...request, select: ['*'] }, 'ada')
    expect(again).toMatchObject({ created: true, rerun_of: made.run_id })
  })

  test('[A29] asked for with other work is refused', async () => {
    const world = await World.open({ script: () => ({ result: failing }) })
    await world.define({ a: [], b: [] })
    const made = await runsOf(world, first).request({ ...request, select: ['a'] }, 'ada')
    await world.clock.advance(10 * SECOND_MS)
    await expect(runsOf(world, first).request({ ...request, select: ['b'] }, 'ada')).rejects.toMatchObject({
      code: 'run_key_conflict',
      facts: { run_id: made.run_id },
    })
  })
})
