import { expect, test } from 'vitest'
import type { WireRun } from '../api/run-contract.ts'
import { summary } from './show-run.ts'

const ended = (state: WireRun['state'], counts: Partial<WireRun>): string => {
  const none = { tasks_succeeded: 0, tasks_failed: 0, tasks_skipped: 0, tasks_cancelled: 0 }
  const times = {
    requested_at: '2025-01-15T10:00:00Z',
    started_at: '2025-01-15T10:00:00Z',
    finished_at: '2025-01-15T10:00:02Z',
  }
  const run: Partial<WireRun> = {
    run_id: 'run_abcdefghijkl',
    state,
    error: null,
    cancel_requested_by: null,
    ...none,
    ...times,
    ...counts,
  }
  return summary(run as WireRun, 0).split('run_abcdefgh  ')[1] ?? ''
}

test('the end of a run says what became of its tasks, unless its state says that already', () => {
  expect(ended('SUCCEEDED', { tasks_total: 8, tasks_succeeded: 8 })).toContain('8 tasks in 2.0 s')
  expect(ended('FAILED', { tasks_total: 8, tasks_failed: 8 })).toContain('8 failed in 2.0 s')
  expect(ended('FAILED', { tasks_total: 1, tasks_failed: 1 })).toContain('1 failed in 2.0 s')
  expect(ended('FAILED', { tasks_total: 8, tasks_succeeded: 5, tasks_failed: 1, tasks_skipped: 2 })).toContain(
    '5 succeeded, 1 failed, 2 skipped in 2.0 s',
  )
  expect(ended('SUCCEEDED', { tasks_total: 2, tasks_skipped: 2 })).toContain('2 skipped in 2.0 s')
})
