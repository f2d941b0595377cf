import { expect, test } from 'vitest'
import { orchestration } from '../../../src/domain/index.ts'
import { DataRemoved } from '../../../src/domain/retention/data-removed.event.ts'
import { TaskFinished } from '../../../src/domain/tasks/task-finished.event.ts'
import { lookOver } from '../../../src/engine/check/look-over.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import { newEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { filesOf, fullState } from '../full-state.ts'
import { paths, Workspace } from '../workspace.ts'

const value = Buffer.from('{"amount":100}')

/** A run whose tasks stored this value: the first with size and checksum on record, the second as an earlier version recorded it. */
async function withValues(): Promise<{ workspace: Workspace; recorded: string; before: string }> {
  const workspace = new Workspace()
  const places = ['data/a/_/m1.json', 'data/b/_/m2.json']
  let made = 0
  for (const batch of runFacts('r', { tasks: 2 }).batches) {
    const events = batch.map((event) => {
      if (event.definition !== TaskFinished) return event
      const payload = event.payload as Parameters<typeof TaskFinished.idempotencyKey>[0]
      const path = places[made++]!
      return newEvent(TaskFinished, {
        ...payload,
        output: made === 1 ? { path, bytes: value.length, sha256: sha256(value) } : { path },
      })
    })
    await workspace.append(...events)
  }
  const [recorded, before] = places.map((place) => `${paths.root}${place}`) as [string, string]
  for (const path of [recorded, before]) await workspace.store.put(path, value)
  return { workspace, recorded, before }
}

test('[S14] stored values are checked when that is asked for, by size and checksum, and those without one are counted', async () => {
  const { workspace, recorded, before } = await withValues()
  expect(await workspace.verify()).toMatchObject({ ok: true, values: null })
  expect(await workspace.verify({ data: true })).toMatchObject({ ok: true, values: { checked: 1, not_checked: 1 } })
  const wrong: [Uint8Array | undefined, RegExp][] = [
    [Buffer.from('{"amount":900}'), /its SHA-256 is/],
    [value.subarray(1), /has 13 bytes instead of 14/],
    [undefined, /is missing/],
  ]
  for (const [bytes, message] of wrong) {
    if (bytes === undefined) await workspace.store.delete(recorded)
    else await workspace.store.put(recorded, bytes)
    expect(await workspace.verify({ data: true })).toMatchObject({
      ok: false,
      problems: [{ path: recorded, message: expect.stringMatching(message) }],
    })
    expect(await workspace.verify(), 'not asked for').toMatchObject({ ok: true })
  }
  await workspace.store.put(recorded, value)
  await workspace.store.delete(before)
  expect((await workspace.verify({ data: true })).problems).toMatchObject([{ path: before }])
})

test('[S14] a removed value is not called missing because the segment that tells of its removal cannot be read; others are still checked', async () => {
  const { workspace, recorded, before } = await withValues()
  const removed = {
    event_id: 'e',
    materialization_id: 'm2',
    materialized_at: '2025-01-15T10:00:00.000Z',
    path: before.slice(paths.root.length),
    bytes: null,
    partition_keys: ['r'],
  }
  const { segment } = await workspace.append(
    newEvent(DataRemoved, { removal_id: 'x', asset_key: 'b', reason: 'purged', removed_by: 'ada', values: [removed] }),
  )
  await workspace.append(reportFact('later'))
  await workspace.store.delete(before)
  expect(await workspace.verify({ data: true })).toMatchObject({ ok: true, values: { removed: 1, missing_or_removed: 0 } })
  const path = paths.segment(segment)
  await workspace.store.put(path, Buffer.from('garbage'))
  expect(await workspace.verify({ data: true })).toMatchObject({
    problems: [{ path }],
    values: { checked: 1, removed: 0, missing_or_removed: 1 },
  })
  await workspace.store.delete(path)
  expect(await workspace.verify({ data: true })).toMatchObject({
    problems: [{ message: expect.stringContaining('is missing') }],
    values: { checked: 1, missing_or_removed: 1 },
  })
  await workspace.store.put(recorded, Buffer.from('{"amount":900}'))
  expect((await workspace.verify({ data: true })).problems.map((problem) => problem.path)).toContain(recorded)
})

test('only events that say so tell of stored values', () => {
  expect(orchestration.events.flatMap(({ type, stores }) => (stores === undefined ? [] : [type]))).toEqual(['TaskFinished'])
  for (const output of [null, 'x', {}, { path: 7 }, { path: '../escape' }, { path: 's3://bucket/key' }])
    expect(TaskFinished.stores?.({ output })).toBeUndefined()
})

test('a start notices files of the state that are gone or have another size, and folded segments that are gone', async () => {
  const workspace = await fullState({ paged: false })
  const manifest = (await workspace.manifests()).at(-1)!
  const look = async () => (await Array.fromAsync(lookOver(workspace.store, paths, manifest))).map(({ path }) => path)
  expect(await look()).toEqual([])
  const [base, history] = [Object.values(manifest.base.tables)[0]!.path, (await filesOf(workspace, 'history')).at(-1)!]
  const [segment] = await filesOf(workspace, 'segment')
  await workspace.store.put(history, (await workspace.store.get(history))!.subarray(1))
  await workspace.store.delete(base)
  await workspace.store.delete(segment!)
  expect((await look()).sort()).toEqual([base, history, segment].sort())
})
