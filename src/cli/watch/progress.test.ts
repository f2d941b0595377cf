import { expect, test } from 'vitest'
import type { WireAttempt, WireRun, WireTask } from '../../api/run-contract.ts'
import type { TaskNow } from '../results/failures.ts'
import { fitted } from './live-block.ts'
import { type Progress, progressRows, remainingMs } from './progress.ts'

const NOW = Date.UTC(2025, 0, 15, 10)
const iso = (msAgo: number): string => new Date(NOW - msAgo).toISOString()

function task(key: string, state: WireTask['state'], { asset = key, began = 0, took = 0 } = {}): TaskNow {
  const isOver = state === 'SUCCEEDED' || state === 'FAILED'
  return {
    task: { task_key: key, asset_key: asset, state, attempt: 1, finished_at: isOver ? iso(0) : null } as WireTask,
    ...(state !== 'READY' && {
      attempt: {
        dispatched_at: iso(began),
        started_at: state === 'DISPATCHED' ? null : iso(began),
        finished_at: isOver ? iso(began - took) : null,
      } as WireAttempt,
    }),
  }
}

const counts = { tasks_total: 200, tasks_succeeded: 0, tasks_failed: 0, tasks_skipped: 0, tasks_cancelled: 0 }
const progress = (tasks: TaskNow[], also: Partial<Progress> = {}, run: Partial<WireRun> = {}): Progress => ({
  run: { run_id: 'run_abcdefghijkl', started_at: iso(72_000), requested_at: iso(72_000), ...counts, ...run } as WireRun,
  tasks,
  usualMs: {},
  printed: new Map(),
  ...also,
})
const shown = (state: Progress, width = 100): string[] => progressRows(state, NOW).map((row) => fitted(row, width))

test('shows counts, what runs now with the longest first, how long it has taken and how long it will take', () => {
  const running = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((key, i) => task(key, 'RUNNING', { began: 1_000 * (i + 1) }))
  const usualMs = Object.fromEntries(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((key) => [key, 61_000]))
  const printed = new Map([['g', 'row 17\u001b[2J']])
  const run = { tasks_succeeded: 131, tasks_failed: 1, tasks_skipped: 2 }
  expect(shown(progress(running, { usualMs, printed }, run))).toEqual([
    'run_abcdefgh  134/200 done  1 failed  2 skipped  7 running  1m 12s  about 1m 00s left',
    '     7.0 s  g  usually 1m 01s  row 17\\u001b[2J',
    '     6.0 s  f  usually 1m 01s',
    '     5.0 s  e  usually 1m 01s',
    '     4.0 s  d  usually 1m 01s',
    '     3.0 s  c  usually 1m 01s',
    '  and 2 more',
  ])
})

test('counts what was heard of tasks, also if nothing was heard of the run since', () => {
  const tasks = [task('a', 'SUCCEEDED'), task('b', 'FAILED'), task('c', 'RUNNING', { began: 1_000 })]
  expect(shown(progress(tasks))[0]).toBe('run_abcdefgh  2/200 done  1 failed  1 running  1m 12s')
})

test('tasks so short that nobody hears of their start count as running, and share what remains', () => {
  const begun = ['a', 'b', 'c', 'd'].map((key) => task(key, 'DISPATCHED', { asset: 'x', began: 40 }))
  const waiting = Array.from({ length: 16 }, (_, i) => task(`w${i}`, 'READY', { asset: 'x' }))
  const tasks = [...begun, ...waiting, task('z', 'DISPATCHED', { asset: 'x', began: 60_000 })]
  expect(shown(progress(tasks, { usualMs: { x: 4_000 } }))).toEqual([
    'run_abcdefgh  0/200 done  4 running  1m 12s  about 21 s left',
  ])
})

test('no line is wider than the terminal, whatever tasks are called', () => {
  const tasks = [task('本'.repeat(40), 'RUNNING', { began: 100 })]
  expect(shown(progress(tasks), 30)).toEqual(['run_abcdefgh  0/200 done  1 r…', `    100 ms  ${'本'.repeat(8)}…`])
})

test('what remains is shared by as many tasks as run at a time, and is never less than the longest of them', () => {
  const usualMs = { slow: 10_000, quick: 2_000 }
  const waiting = Array.from({ length: 4 }, (_, i) => task(`q${i}`, 'READY', { asset: 'quick' }))
  const two = [task('s', 'RUNNING', { asset: 'slow', began: 4_000 }), task('q', 'RUNNING', { asset: 'quick', began: 0 })]
  expect(remainingMs(progress([...two, ...waiting], { usualMs }), NOW)).toBe(8_000)
  expect(remainingMs(progress(two, { usualMs }), NOW)).toBe(6_000)
})

test('an asset without history is estimated by its tasks of this run; without those, nothing is promised', () => {
  const waiting = task('b', 'READY', { asset: 'x' })
  expect(remainingMs(progress([waiting]), NOW)).toBeUndefined()
  expect(remainingMs(progress([task('a', 'SUCCEEDED', { asset: 'x', began: 9_000, took: 3_000 }), waiting]), NOW)).toBe(3_000)
  // It has taken longer than usual already.
  expect(remainingMs(progress([task('a', 'RUNNING', { began: 9_000 })], { usualMs: { a: 1_000 } }), NOW)).toBeUndefined()
})
