import { taskQueueConformance } from '../../testing/conformance/task-queue.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { MemoryTaskQueue } from './task-queue.ts'

taskQueueConformance('a task queue in memory', async () => {
  const clock = new VirtualClock()
  return { queue: new MemoryTaskQueue(clock), startWithinMs: 1_000, pass: (ms) => clock.advance(ms) }
})
