import { expect, test } from 'vitest'
import { checksumOf } from '../../contract/stored-output.ts'
import { Story } from '../../testing/histories/story.ts'
import { storedValues } from '../partitions/stored-values.table.ts'
import { TaskFinished } from '../tasks/task-finished.event.ts'
import { DataRemoved } from './data-removed.event.ts'
import { FilesDeleted } from './files-deleted.event.ts'
import { keepRuleOf } from './keep-rule.ts'
import { pendingRemovals } from './pending-removals.table.ts'
import { RetentionAdvanced } from './retention-advanced.event.ts'
import { retentionState } from './retention-state.table.ts'
import { valueVersions } from './value-versions.table.ts'

const small = { value: '7', ...checksumOf(new TextEncoder().encode('7')) }
const { value: _, ...withoutValue } = small

function stored(output: object) {
  const story = new Story()
  const run = story.run('monday', { orders: [] })
  run.dispatched('orders')
  story.tell(TaskFinished, {
    ...run.attempt('orders'),
    outcome: 'SUCCEEDED',
    completed_at: story.time(),
    materialization_id: 'm1',
    output,
  })
  return { story, rows: story.rows(valueVersions) }
}

test('[K5] what is on record of a value is the same after the value was left out of its event', () => {
  expect(stored(withoutValue).rows).toEqual(stored(small).rows)
  expect(stored(small).rows).toMatchObject([{ asset_key: 'orders', path: null, bytes: 1, removed_at: null }])
  expect(stored({ rows: 3 }).rows, 'an asset that stores its own data has no value').toEqual([])
})

test('[K3] a small value that is purged leaves the tables at once, and its row says when and why', () => {
  const { story, rows } = stored(small)
  expect(story.row(storedValues, 'orders', '')).toMatchObject({ value: '7', removed_at: null })
  const { event_id = '', materialized_at } = rows[0] ?? {}
  story.tell(DataRemoved, {
    removal_id: 'x1',
    asset_key: 'orders',
    reason: 'purged',
    removed_by: 'ada',
    values: [
      {
        event_id,
        partition_keys: [''],
        materialization_id: 'm1',
        materialized_at: new Date(materialized_at ?? 0).toISOString(),
        bytes: 1,
        sha256: small.sha256,
      },
    ],
  })
  expect(story.row(storedValues, 'orders', '')).toMatchObject({
    value: null,
    materialization_id: 'm1',
    removed_reason: 'purged',
    removed_at: expect.any(Number),
  })
  expect(story.rows(valueVersions)).toMatchObject([{ bytes: 1, removed_reason: 'purged', removed_by: 'ada' }])
  expect(story.rows(pendingRemovals), 'there is no file').toEqual([])
})

const removal = {
  removal_id: 'x1',
  asset_key: 'orders',
  reason: 'expired' as const,
  removed_by: 'retention',
  values: [
    {
      event_id: '01JH0000000000000000000000',
      partition_keys: ['p'],
      materialized_at: '2025-01-15T10:00:00.000Z',
      path: 'data/orders/p/m1.json',
    },
  ],
}

test('[K4] files of a removal are pending until they are deleted, whichever is heard of first', () => {
  for (const first of ['removed', 'deleted']) {
    const story = new Story()
    if (first === 'deleted') story.tell(FilesDeleted, { removal_id: 'x1' })
    story.tell(DataRemoved, removal)
    expect(story.rows(pendingRemovals).length).toBe(first === 'deleted' ? 0 : 1)
    story.tell(FilesDeleted, { removal_id: 'x1' })
    expect(story.rows(pendingRemovals)).toEqual([])
  }
})

test('[K4] nothing but the path of a value is ever pending, whatever a ledger says', () => {
  const story = new Story()
  for (const path of ['../secrets.json', 'ledger/orchestration/x.json', '/etc/passwd', 'data/../local/secrets.json'])
    story.tell(DataRemoved, { ...removal, removal_id: path, values: removal.values.map((value) => ({ ...value, path })) })
  expect(story.rows(pendingRemovals)).toEqual([])
})

test('[K1] how far retention has come is the later word, also back to the beginning for another rule', () => {
  const story = new Story()
  const said = { asset_key: 'orders', versions: 3, days: 0, passed_event_id: '01JH0000000000000000000009', turn: 2 }
  story.tell(RetentionAdvanced, said)
  story.tell(RetentionAdvanced, { ...said, turn: 1, passed_event_id: '01JH0000000000000000000010' })
  expect(story.rows(retentionState)).toMatchObject([said])
  const restarted = { ...said, versions: 1, turn: 3, passed_event_id: '01JH0000000000000000000001' }
  story.tell(RetentionAdvanced, restarted)
  expect(story.rows(retentionState)).toMatchObject([restarted])
})

test('[K1] a rule that cannot be read removes nothing', () => {
  expect(keepRuleOf({ policies: { keep: { versions: 2, days: 7 } } })).toEqual({ versions: 2, days: 7 })
  for (const keep of [
    undefined,
    null,
    'all',
    {},
    { versions: 0, days: 0 },
    { versions: 1.5, days: 0 },
    { versions: 1, days: -1 },
  ])
    expect(keepRuleOf({ policies: { keep } })).toBeUndefined()
})
