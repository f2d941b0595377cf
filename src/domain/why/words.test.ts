import { expect, test } from 'vitest'
import { type FactsByCode, type Reason, reason, type WhyAnswer } from './reasons.ts'
import { whyInWords, wordsOfReason } from './words.ts'

const counted = (counts: Partial<FactsByCode['partition_counts']>): string =>
  wordsOfReason(reason('partition_counts', { partitions: 0, made: 0, stale: 0, failed: 0, missing: 0, ...counts }), 'UTC')

const answer = (...because: Reason[]): WhyAnswer => ({
  subject: { kind: 'asset', id: 'sales', name: 'sales', partition: null, message_id: null },
  ...{ verdict: 'fresh', at: null, timezone: null, because },
})

test('[A64] partitions are counted without those of which there are none', () => {
  expect(counted({ partitions: 47, made: 47 })).toBe('all 47 partitions are up to date')
  expect(counted({ partitions: 47, made: 8, missing: 39 })).toBe(
    '8 of 47 partitions are up to date, 39 were never materialized',
  )
  expect(counted({ partitions: 4_000, made: 1, stale: 3_996, failed: 2, missing: 1 })).toBe(
    '1 of 4,000 partitions is up to date, 3,996 are stale, the last attempt at 2 failed and 1 was never materialized',
  )
  expect(counted({ partitions: 3, missing: 3 })).toBe('it has 3 partitions')
})

test('[A64] what came of the last tick of a schedule is told in one line, and sensors that may run anything are told together', () => {
  const at = '2025-01-15T05:00:00.000Z'
  const ran = { run_id: 'run_1', state: 'SUCCEEDED', cause: 'cron', by: null, decided_at: at, lateness_ms: 0 } as const
  const tick = reason('last_tick', { at, verdict: 'ran' }, [reason('triggered', ran)])
  const lines = whyInWords(
    answer(
      reason('fresh', {}),
      reason('run_by_schedule', { schedule: 'nightly', status: 'active', next: null }, [tick]),
      reason('run_by_any_sensor', { sensors: ['files', 'inbox'], count: 3 }),
    ),
    'UTC',
  )
  expect(lines.slice(1)).toEqual([
    { depth: 1, text: 'the schedule nightly runs it and has no next tick' },
    { depth: 2, text: 'it ran at 2025-01-15 05:00: on time, as run_1 (succeeded)' },
    { depth: 1, text: 'the sensors files, inbox and 1 more may run any asset' },
  ])
})
