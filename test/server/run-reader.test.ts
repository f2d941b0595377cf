import { beforeAll, expect, test } from 'vitest'
import type { RunQuery } from '../../src/api/run-contract.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { knownRows } from '../../src/server/leader/known-rows.ts'
import { RunReader } from '../../src/server/workspace/run-reader.ts'
import { runFacts } from '../../src/testing/facts.ts'
import { Workspace } from '../engine/workspace.ts'

/** Twelve runs, the newest last: nine are history, two have ended and are still in memory, one is unfinished. */
const RUNS = 12
const facts = Array.from({ length: RUNS }, (_, i) =>
  runFacts(`r${i}`, { tasks: 1 + (i % 2), outcome: i % 3 === 0 ? 'FAILED' : 'SUCCEEDED' }),
)
const ids = facts.map(({ runId }) => runId)

const workspace = new Workspace()
let compactor: Compactor
let reader: RunReader
beforeAll(async () => {
  compactor = await workspace.compactor()
  for (const [i, { batches }] of facts.entries()) {
    await workspace.append(...(i === RUNS - 1 ? batches.slice(0, 1) : batches).flat())
    await compactor.catchUp()
    await compactor.publish({ kind: i < 9 ? 'base' : 'delta' })
  }
  reader = new RunReader(knownRows(() => compactor))
})

const listed = async (query: Partial<RunQuery>): Promise<number[]> =>
  (await reader.list({ limit: 100, ...query })).map(({ run_id }) => ids.indexOf(run_id))

test('[S13] a list has the newest runs first, whether they are in memory or history', async () => {
  expect(await listed({})).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
  expect(await listed({ limit: 4 })).toEqual([11, 10, 9, 8])
})

test('[S13] pages follow each other without a gap, also when runs became history in between', async () => {
  const pages: number[][] = []
  let cursor: string | undefined
  for (let more = true; more; ) {
    const page = await reader.page({ limit: 5, cursor })
    pages.push(page.runs.map(({ run_id }) => ids.indexOf(run_id)))
    more = page.next_cursor !== null
    cursor = page.next_cursor ?? undefined
    await compactor.publish({ kind: 'base' })
  }
  expect(pages).toEqual([
    [11, 10, 9, 8, 7],
    [6, 5, 4, 3, 2],
    [1, 0],
  ])
  await expect(reader.page({ limit: 5, cursor: 'nonsense' })).rejects.toMatchObject({ kind: 'invalid', code: 'bad_cursor' })
})

test('a list is filtered by state, trigger, asset and time, and by several of them', async () => {
  expect(await listed({ status: 'FAILED' })).toEqual([9, 6, 3, 0])
  expect(await listed({ status: 'PENDING' })).toEqual([11])
  expect(await listed({ trigger: 'manual', limit: 2 })).toEqual([11, 10])
  expect(await listed({ trigger: 'schedule' })).toEqual([])
  expect(await listed({ asset: 'asset-1', status: 'SUCCEEDED' })).toEqual([7, 5, 1])
  const [run] = await reader.list({ limit: 1, status: 'FAILED' })
  const at = run!.requested_at
  expect(await listed({ since: at })).toEqual([11, 10, 9])
  expect(await listed({ until: at, limit: 2 })).toEqual([8, 7])
})

test('[S13] a run is found by its id or the beginning of it, with its tasks and attempts, wherever it is', async () => {
  for (const [i, id] of ids.entries()) {
    const { run, tasks, attempts } = await reader.get(id.slice(0, 14))
    expect(run).toMatchObject({ run_id: id, asked_by: 'ada' })
    expect(tasks.map(({ asset_key }) => asset_key)).toEqual(i % 2 === 0 ? ['asset-0'] : ['asset-0', 'asset-1'])
    if (i < RUNS - 1) expect(attempts.length, `run ${i}`).toBeGreaterThan(0)
  }
  await expect(reader.get('run_')).rejects.toMatchObject({ code: 'ambiguous_run' })
  await expect(reader.get('run_zzzzzzzz')).rejects.toMatchObject({ kind: 'not_found', code: 'no_such_run' })
  const start = ids.map((id) => id.slice(0, 5)).find((each, i, all) => all.indexOf(each) !== i)
  await expect(reader.get(start ?? '')).rejects.toMatchObject({ code: 'ambiguous_run' })
})

test('how long tasks usually take comes from the runs that have ended', async () => {
  // The tasks of these runs start a second after they were dispatched, and take two.
  expect(await reader.durations(ids[1]!)).toEqual({ 'asset-0': 2_000, 'asset-1': 2_000 })
})
