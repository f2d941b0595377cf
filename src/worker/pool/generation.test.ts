import { expect, onTestFinished, test } from 'vitest'
import type { Ending } from './ending.ts'
import { Generation, type Loaded, type LoadFailed } from './generation.ts'

const LOADED: Loaded = { type: 'loaded', manifest: { project: 'p', assets: [] } }
const FAILED: LoadFailed = { type: 'load_failed', problems: [{ code: 'syntax_error', message: 'no', file: 'a.ts' }] }

/** A process of a generation that sends these lines and then sleeps. */
function started(...lines: string[]) {
  const script = `${lines.map((line) => `echo '${line}' >&3`).join('; ')}; exec sleep 600`
  const generation = new Generation({ file: 'sh', args: ['-c', script] })
  const gone = Promise.withResolvers<Ending>()
  const worker = generation.spawn({ received() {}, gone: (_, ending) => gone.resolve(ending) }, () => undefined)
  if (worker === undefined) throw new Error('nothing was started')
  onTestFinished(() => worker.kill())
  return { generation, worker, gone: gone.promise }
}

test('a process that was killed while it was idle gets no work', async () => {
  const { generation, worker, gone } = started(JSON.stringify(LOADED), 'nonsense')
  generation.loaded(worker, LOADED)
  generation.rest(worker)
  expect(await gone).toMatchObject({ killed: true, signal: 'SIGKILL', stderr: expect.stringContaining('file descriptor 3') })
  expect(generation.take(1)).toBeUndefined()
})

test('code that is dismissed stays so, whatever its processes report afterwards', async () => {
  const { generation, worker, gone } = started()
  generation.dismiss()
  generation.loaded(worker, LOADED)
  expect(await generation.firstLoad).toMatchObject({
    problems: [{ message: expect.stringContaining('Loading was cancelled before it finished.') }],
  })
  generation.loadFailed(worker, FAILED)
  expect(generation.isBroken).toBe(false)
  expect(() => generation.spawn({ received() {}, gone() {} }, () => undefined)).toThrow('gets no more processes')
  await gone
})

test('code that could not be loaded is good again when a later process can load it', () => {
  const { generation, worker } = started()
  generation.loadFailed(worker, FAILED)
  expect(generation.failure).toMatchObject({ message: 'The project cannot be loaded: a.ts: no' })
  generation.loaded(worker, LOADED)
  expect(generation.failure).toBeUndefined()
})

test('a process is a worker until it leaves', async () => {
  const { worker, gone } = started()
  expect(worker.takesWork).toBe(true)
  expect(() => worker.takeJobs()).toThrow('a worker that is open keeps its jobs')
  worker.leave()
  expect(worker.takesWork).toBe(false)
  expect(await gone).toMatchObject({ killed: true })
  worker.kill()
})
