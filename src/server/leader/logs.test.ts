import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import { Paths } from '../../engine/paths.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { AttemptLogs, readAttemptLog } from './logs.ts'

const paths = new Paths({ tenant_id: 'acme', workspace_id: 'prod' })
const speaker = { run_id: 'run_a', task_key: 't', attempt: 1, attempt_id: 'a_1' }
const line = (text: string): LogEntry => ({ at: 1, stream: 'stdout', text })

async function stored(store: ReturnType<typeof memoryStore>): Promise<string[]> {
  const texts: string[] = []
  for await (const { text } of readAttemptLog(store, paths, 'run_a', 'a_1')) texts.push(text)
  return texts
}

test('lines are stored within a second, in order, and followers hear them at once', async () => {
  const store = memoryStore()
  const clock = new VirtualClock()
  const logs = new AttemptLogs({ store, paths, clock, onError: (error) => expect.fail(String(error)) })
  const heard: string[] = []
  const leave = logs.follow('run_a', ({ entries }) => void heard.push(...entries.map(({ text }) => text)))
  logs.add(speaker, [line('one'), line('two')])
  expect(heard).toEqual(['one', 'two'])
  expect(await stored(store)).toEqual([])
  await clock.advance(1_000)
  expect(await stored(store)).toEqual(['one', 'two'])
  leave()
  logs.add(speaker, [line('three')])
  expect(heard).toEqual(['one', 'two'])
  logs.end('a_1')
  await clock.advance(1)
  expect(await stored(store)).toEqual(['one', 'two', 'three'])
})

test('an attempt that is begun again after a crash does not write over what it said before', async () => {
  const store = memoryStore()
  const clock = new VirtualClock()
  for (const text of ['before', 'after']) {
    const logs = new AttemptLogs({ store, paths, clock, onError: (error) => expect.fail(String(error)) })
    logs.add(speaker, [line(text)])
    await logs.close()
    await clock.advance(5_000)
  }
  expect(await stored(store)).toEqual(['before', 'after'])
})

test('a store that cannot be written loses the lines, is told, and harms nobody', async () => {
  const errors: unknown[] = []
  const store = { ...memoryStore(), put: () => Promise.reject(new Error('full')) }
  const clock = new VirtualClock()
  const logs = new AttemptLogs({ store, paths, clock, onError: (error) => errors.push(error) })
  logs.add(speaker, [line('one')])
  await clock.advance(2_000)
  await logs.close()
  expect(errors).toHaveLength(1)
})
