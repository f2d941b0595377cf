import fs from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf, type TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

const ASSETS = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

export default Array.from({ length: 6 }, (_, i) =>
  asset('held/' + i, {
    async run({ signal }) {
      while (!existsSync('go')) await sleep(20, undefined, { signal })
    },
  }),
)
`

/** Six tasks are more than it has workers for. It answers while they wait, all of them succeed, and it stops when asked to. */
async function copes(project: TestProject, dev: Servo): Promise<void> {
  const client = await project.client()
  const { run_id } = await client.runs.request({ select: ['*'] }, 'ada')
  const states = async (): Promise<unknown[]> => (await client.runs.get(run_id)).tasks.map(({ state }) => state)
  await until(async () => (await states()).includes('RUNNING'), 'a task to run')
  expect((await fetch(`${dev.url}/health/live`)).status).toBe(200)
  project.write('go')
  await until(async () => (await states()).every((state) => state === 'SUCCEEDED'), 'all tasks to succeed')
  dev.kill('SIGTERM')
  expect((await dev.ended).code).toBe(0)
}

test('a server whose Node was deleted answers, lets the workers that live do the work, and stops when asked to', async () => {
  const project = projectOf({ 'assets/held.ts': ASSETS })
  const node = project.file('node')
  fs.copyFileSync(process.execPath, node)
  const dev = project.begin(['dev', '--port', '0', '--concurrency', '6'], {}, node)
  await dev.says(/ready in/)
  project.remove('node')
  await copes(project, dev)
  expect((await dev.ended).stderr).toMatch(/warning: .*worker/)
})

test('a server that may open few files answers, and does the work with as many workers as there is room for', async () => {
  const project = projectOf({ 'assets/held.ts': ASSETS })
  const node = project.file('few-files')
  // The server has some 35 open itself, and each worker takes four.
  project.write('few-files', `#!/bin/sh\nulimit -n 62\nexec "${process.execPath}" "$@"\n`)
  fs.chmodSync(node, 0o755)
  const dev = project.begin(['dev', '--port', '0', '--concurrency', '6'], {}, node)
  await dev.says(/ready in/)
  await copes(project, dev)
})
