import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'
import { until } from './support/until.ts'

const config = (queues: string): string => `import { defineConfig, inProcess, local } from 'servo-flow'
const dev = { storage: local('.servo'), queue: inProcess({ concurrency: 5 }) }
export default defineConfig({ project: 'shop', dirs: ['assets'], environments: { dev }, queues: ${queues} })
`

const assets = `import { asset } from 'servo-flow'
export default ['gpu', 'cpu'].flatMap((queue) =>
  Array.from({ length: 20 }, (_, i) => asset(\`\${queue}/\${i}\`, { queue, run: () => i })),
)
`

test('[D2] the limits of servo.config.ts hold for workers that ask, and saving others makes those count', async () => {
  const project = projectOf({ 'servo.config.ts': config('{ cpu: { limit: 1 } }'), 'assets/all.ts': assets })
  const dev = await project.dev()
  const { url } = dev
  let { runs } = await project.client()
  const { run_id } = await runs.request({ select: ['*'] }, 'ada')
  const out = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {}
    for (const { task_key, state } of (await runs.get(run_id)).tasks) {
      const queue = String(task_key).slice(0, 3)
      if (state === 'DISPATCHED') counts[queue] = (counts[queue] ?? 0) + 1
    }
    return counts
  }
  expect(await out()).toEqual({ cpu: 1, gpu: 4 })
  const claimed = await fetch(`${url}/api/v1/orchestration/workers/claim`, {
    method: 'POST',
    headers: { authorization: `Bearer ${project.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ worker_id: 'w1', capacity: 100 }),
  })
  expect(((await claimed.json()) as { dispatches: unknown[] }).dispatches).toHaveLength(5)

  const more = config('{ cpu: { limit: 3 }, gpu: { limit: 4 } }').replace('concurrency: 5', 'concurrency: 9')
  project.write('servo.config.ts', more)
  await until(async () => (await out())['cpu'] === 3)
  expect(await out()).toEqual({ cpu: 3, gpu: 4 })

  dev.kill('SIGKILL')
  await dev.ended
  await project.dev()
  runs = (await project.client()).runs
  expect(await out(), 'a new server knows the limits before it hands anything out').toEqual({ cpu: 3, gpu: 4 })
})
