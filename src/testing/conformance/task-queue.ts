import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { QueuedTask, TaskQueue } from '../../ports/task-queue.ts'

/** A queue without tasks; every test asks for one of its own. */
export interface OpenedTaskQueue {
  readonly queue: TaskQueue
  /** The shortest time to begin that a test can distinguish from none. */
  readonly startWithinMs: number
  readonly pass: (ms: number) => Promise<void>
  readonly close?: () => Promise<void>
}

export type OpenTaskQueue = () => Promise<OpenedTaskQueue>

/** The law of `ports/task-queue.ts`, as tests. Call it from the test file of an adapter: it conforms when they pass. */
export function taskQueueConformance(name: string, openQueue: OpenTaskQueue): void {
  describe(name, () => {
    let opened: OpenedTaskQueue
    let queue: TaskQueue

    beforeEach(async () => {
      opened = await openQueue()
      queue = opened.queue
    })

    afterEach(async () => {
      await opened.close?.()
    })

    function task(name: string, changes: Partial<QueuedTask> = {}): QueuedTask {
      const place = { run_id: 'run_1', task_key: name, attempt: 1, attempt_id: `att_${name}`, queue: 'q' }
      return { ...place, priority: 0, since: 0, startWithinMs: opened.startWithinMs, number: 1, ...changes }
    }

    const keys = (tasks: readonly QueuedTask[]): string[] => tasks.map(({ task_key }) => task_key)

    it('a task that is enqueued twice is there once, also while a worker has it', async () => {
      expect(await queue.enqueue(task('a'))).toBe('enqueued')
      expect(await queue.enqueue(task('a'))).toBe('exists')
      expect(await queue.take(['q'], 5)).toEqual([task('a')])
      expect(await queue.enqueue(task('a'))).toBe('exists')
      expect(await queue.take(['q'], 5)).toEqual([])
    })

    it('the most urgent task is handed out first, then the one that has waited longest', async () => {
      const tasks = [task('late', { since: 3 }), task('early', { since: 1 }), task('urgent', { priority: 1, since: 9 })]
      for (const each of tasks) await queue.enqueue(each)
      expect(keys(await queue.take(['q'], 2))).toEqual(['urgent', 'early'])
      expect(keys(await queue.take(['q'], 2))).toEqual(['late'])
    })

    it('a worker that names queues gets work of those queues, and a worker that names none gets any', async () => {
      await queue.enqueue(task('a', { queue: 'one' }))
      await queue.enqueue(task('b', { queue: 'two' }))
      await queue.enqueue(task('c', { queue: 'three' }))
      expect(keys(await queue.take(['two', 'two', 'nowhere'], 5))).toEqual(['b'])
      expect(keys(await queue.take(undefined, 5)).sort()).toEqual(['a', 'c'])
    })

    it('workers that take work at the same time get different tasks', async () => {
      for (let i = 0; i < 20; i++) await queue.enqueue(task(`t${i}`))
      const taken = (await Promise.all(Array.from({ length: 10 }, () => queue.take(['q'], 3)))).flat()
      expect(new Set(keys(taken)).size).toBe(20)
      expect(taken).toHaveLength(20)
    })

    it('a task that no worker began in time is handed out again, not sooner', async () => {
      await queue.enqueue(task('a'))
      await queue.take(['q'], 1)
      await opened.pass(opened.startWithinMs / 2)
      expect(await queue.take(['q'], 1)).toEqual([])
      await opened.pass(opened.startWithinMs)
      expect(await queue.take(['q'], 1)).toEqual([task('a')])
    })

    it('a task that is forgotten is not handed out again, and may be enqueued anew', async () => {
      await queue.enqueue(task('waiting'))
      await queue.enqueue(task('taken', { priority: 1 }))
      await queue.take(['q'], 1)
      for (const name of ['waiting', 'taken', 'never']) await queue.forget(task(name))
      expect(await queue.has(task('waiting'))).toBe(false)
      expect(await queue.has(task('taken'))).toBe(false)
      await opened.pass(opened.startWithinMs * 2)
      expect(await queue.take(undefined, 5)).toEqual([])
      expect(await queue.enqueue(task('waiting', { number: 2 }))).toBe('enqueued')
      expect(await queue.take(undefined, 5)).toEqual([task('waiting', { number: 2 })])
    })

    it('withdrawing a run takes back its waiting tasks, and leaves tasks that a worker has and tasks of other runs', async () => {
      await queue.enqueue(task('taken', { priority: 1 }))
      await queue.enqueue(task('waiting'))
      await queue.enqueue(task('other', { run_id: 'run_2' }))
      await queue.take(['q'], 1)
      expect(keys(await queue.withdraw('run_1'))).toEqual(['waiting'])
      expect(await queue.withdraw('run_1')).toEqual([])
      expect(await queue.has(task('taken'))).toBe(true)
      expect(await queue.has(task('waiting'))).toBe(false)
      expect(keys(await queue.take(['q'], 5))).toEqual(['other'])
    })

    it('a listener is called when there is work, even because a task was not begun in time, until it leaves', async () => {
      let calls = 0
      const leave = queue.onWork(() => calls++)
      await queue.enqueue(task('a'))
      await expect.poll(() => calls).toBeGreaterThan(0)
      await queue.take(['q'], 1)
      const before = calls
      await opened.pass(opened.startWithinMs * 2)
      await expect.poll(() => calls).toBeGreaterThan(before)
      leave()
      const last = calls
      await queue.enqueue(task('b'))
      await opened.pass(opened.startWithinMs)
      expect(calls).toBe(last)
    })
  })
}
