import { expect, test } from 'vitest'
import type { Job } from './job.ts'
import type { LocalWorker } from './local-worker.ts'
import { placeIn, shortQueues } from './short-queue.ts'

const job = (expectedMs: number, elapsedMs = 0) => ({ expectedMs, elapsedMs: () => elapsedMs }) as Job

/** A worker with these jobs, to which more can be added. */
const worker = (...jobs: Job[]) => ({ job: jobs[0], jobs, takesWork: true }) as unknown as LocalWorker & { jobs: Job[] }

type FakeWorker = ReturnType<typeof worker>

/** Gives attempts to the queues until there is no place for one. */
function fill(workers: FakeWorker[], expectedMs: number): number[] {
  const queues = shortQueues(workers)
  for (let at = placeIn(queues, expectedMs); at !== undefined; at = placeIn(queues, expectedMs))
    workers.find((one) => one === at)?.jobs.push(job(expectedMs))
  return workers.map(({ jobs }) => jobs.length)
}

test('brief attempts wait behind brief ones, at most sixteen, the shortest queue first', () => {
  const workers = [worker(job(0.1)), worker(job(0.1), job(0.1))]
  expect(placeIn(shortQueues(workers), 0.1)).toBe(workers[0])
  expect(fill(workers, 0.1)).toEqual([17, 17])
})

test('no more waits in a process than it does in ten milliseconds', () => {
  expect(fill([worker(job(1.5))], 1.5)).toEqual([7])
})

test('a queue is left alone until it is almost empty', () => {
  expect(fill([worker(job(0.1), job(0.1), job(0.1))], 0.1)).toEqual([3])
})

test('nothing waits behind an attempt that is expected to take long, or that already does', () => {
  expect(fill([worker(job(2)), worker(job(0.1, 5))], 0.1)).toEqual([1, 1])
})

test('an attempt that is expected to take long waits behind nobody', () => {
  expect(fill([worker(job(0.1))], 2)).toEqual([1])
})

test('nothing waits in a process that is leaving or has not begun anything', () => {
  const leaving = { ...worker(job(0.1)), takesWork: false } as FakeWorker
  expect(fill([leaving, worker()], 0.1)).toEqual([1, 0])
})
