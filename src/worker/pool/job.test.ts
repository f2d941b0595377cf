import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Job, type JobOptions } from './job.ts'
import { CANCELLED, type Work, type WorkEnd } from './work.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const DONE: WorkEnd = { kind: 'reported', result: { outcome: 'SUCCEEDED' } }

/** A job, and what it asked of the processes that had it. */
function jobWith(options: JobOptions = {}, graceMs = 5_000) {
  const envelope = { task_id: 'd_1', task_key: 'a', run_id: 'run_1', attempt: 1, attempt_id: 'att_1', asset_key: 'a' }
  const message = { type: 'run', envelope: { ...envelope, payload: { inputs: {}, labels: {} } } } as const
  const work: Work = { id: 'att_1', name: 'a', message }
  const job = new Job(work, options, { now: () => 0, graceMs })
  const asked: string[] = []
  const process = { askToStop: (_: string, reason: string) => void asked.push(reason), kill: () => void asked.push('killed') }
  return { job, asked, queue: () => job.queue(process, 1) }
}

test('a job that takes too long is asked to stop, and its process is killed after the grace', async () => {
  const { job, asked, queue } = jobWith({ timeoutMs: 1_000 })
  queue()
  job.begin()
  vi.advanceTimersByTime(1_000)
  expect(asked).toEqual(['its timeout has passed'])
  vi.advanceTimersByTime(5_000)
  expect(asked.at(-1)).toBe('killed')
  job.finish(DONE, false)
  expect(await job.end).toMatchObject({ category: 'timeout', message: expect.stringContaining('was killed') })
})

test('a job that ended kills nobody later', () => {
  const { job, asked, queue } = jobWith({ timeoutMs: 1_000 })
  queue()
  job.begin()
  job.cancel('enough', 100)
  job.finish(DONE, true)
  vi.advanceTimersByTime(10_000)
  expect(asked).toEqual(['enough'])
})

test('being asked again to stop gives less time, never more, and the first reason stays', async () => {
  const { job, asked, queue } = jobWith({ timeoutMs: 1_000 })
  queue()
  job.begin()
  vi.advanceTimersByTime(1_000)
  job.cancel('later', 60_000)
  expect(asked).toEqual(['its timeout has passed'])
  job.cancel('sooner', 10)
  vi.advanceTimersByTime(10)
  expect(asked).toEqual(['its timeout has passed', 'sooner', 'killed'])
  job.finish(DONE, false)
  expect(await job.end).toMatchObject({ category: 'timeout' })
})

test('the grace of a job that is cancelled in a queue starts when the job begins', () => {
  const { job, asked, queue } = jobWith()
  queue()
  job.cancel('enough', 100)
  vi.advanceTimersByTime(60_000)
  expect(asked).toEqual(['enough'])
  job.begin()
  vi.advanceTimersByTime(100)
  expect(asked).toEqual(['enough', 'enough', 'killed'])
})

test('a job that is cancelled by its own start is killed once', () => {
  const started: { cancel?: () => void } = {}
  const { job, asked, queue } = jobWith({ timeoutMs: 50, onStart: () => started.cancel?.() })
  started.cancel = () => job.cancel('enough', 100)
  queue()
  job.begin()
  vi.advanceTimersByTime(10_000)
  expect(asked).toEqual(['enough', 'killed'])
})

test('a job that is taken back has all its time again', async () => {
  const { job, asked, queue } = jobWith({ timeoutMs: 1_000 })
  queue()
  job.begin()
  vi.advanceTimersByTime(1_500)
  job.takeBack()
  vi.advanceTimersByTime(60_000)
  expect(job.elapsedMs()).toBe(0)
  queue()
  job.begin()
  vi.advanceTimersByTime(900)
  expect(asked).toEqual(['its timeout has passed'])
  job.finish(DONE, true)
  expect(await job.end).toEqual(DONE)
})

test('a job moves a few times, and as often as it likes while it has not begun', () => {
  const { job, queue } = jobWith()
  for (let i = 0; i < 20; i++) {
    queue()
    job.takeBack()
  }
  expect(job.mayMove).toBe(true)
  for (let i = 0; i < 5; i++) {
    queue()
    job.begin()
    job.takeBack()
  }
  expect(job.mayMove).toBe(false)
})

test('a job is run by one process at a time, and ends once', () => {
  const { job, queue } = jobWith()
  expect(() => job.begin()).toThrow('a job that is waiting has no process to begin in')
  queue()
  expect(queue).toThrow('a job that is queued does not become queued')
  job.begin()
  job.finish(CANCELLED, true)
  expect(() => job.finish(DONE, true)).toThrow('a job that is ended does not become ended')
  expect(queue).toThrow('a job that is ended does not become queued')
})
