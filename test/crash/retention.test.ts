import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { projectOf } from '../e2e/support/project.ts'

/** Kills of a server that removes values. More with `SERVO_RETENTION_KILLS=50`. */
const KILLS = Number(process.env['SERVO_RETENTION_KILLS'] ?? 1)

const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'shop', dirs: ['assets'], keep: { versions: 1 } })
`
const ASSETS = `import { asset } from 'servo-flow'
export const made = asset('made', { run: () => 'x'.repeat(6_000) + Date.now() })
export const read = asset('read', { inputs: { made }, run: ({ made }) => made.length })
export const table = asset('table', { keep: { versions: 2 }, run: () => 'y'.repeat(6_000) + Date.now() })
`

test('[K4] a server that is killed while it removes values loses none that is kept, and leaves no file for long', {
  timeout: 120_000 + KILLS * 20_000,
}, async () => {
  const project = projectOf({ 'servo.config.ts': CONFIG, 'assets/all.ts': ASSETS })
  const env = { SERVO_RETENTION_MS: '50' }
  for (let round = 0; round < KILLS; round++) {
    const dev = await project.devIn(env)
    const client = await project.client()
    const until = performance.now() + 1_500 + Math.random() * 2_000
    while (performance.now() < until) {
      await client.runs.request({ select: ['*'] }, 'somebody')
      await sleep(Math.random() * 120)
    }
    dev.kill('SIGKILL')
    await dev.ended
    const { ok, problems, values } = await project.json('verify', '--data')
    expect({ ok, problems }, `round ${round}`).toEqual({ ok: true, problems: [] })
    expect(values.removed, `round ${round}`).toBeGreaterThan(0)
  }
  const dev = await project.devIn(env)
  await dev.says(/ready/)
  expect(await project.servo('run', '*')).toMatchObject({ code: 0 })
  await sleep(1_000)
  dev.kill('SIGTERM')
  await dev.ended
  // Nothing goes on any more: what is left to remove goes now, and what is kept can be read.
  expect(await project.servo('gc', '--yes')).toMatchObject({ code: 0 })
  const { ok, values } = await project.json('verify', '--data')
  expect({ ok, not_deleted: values.not_deleted, checked: values.checked }).toEqual({ ok: true, not_deleted: 0, checked: 3 })
  expect(await project.servo('show', 'made')).toMatchObject({ code: 0 })
})
