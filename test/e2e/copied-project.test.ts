import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'
import { until } from './support/until.ts'

const HOLD = `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'
export const quick = asset('quick', { run: () => 1 })
export const hold = asset('hold', {
  async run({ signal }) {
    while (!existsSync('go')) await sleep(50, undefined, { signal })
  },
})
`

/** A tool of the system, not of ours, whatever looks for those in package.json. */
const CP = 'cp'

test('commands in a project that was copied while it ran never speak to the original', async () => {
  const original = projectOf({ 'assets/hold.ts': HOLD })
  const dev = await original.dev()
  const run_id = await original.request('hold')
  await dev.says(/ running +hold\n/)
  // Quiet again: what is copied is not being written.
  const published = async (): Promise<boolean> =>
    (await original.query("SELECT state FROM tasks WHERE state = 'RUNNING'").catch(() => [])).length > 0
  await until(published, 'the tables to be written')

  const copy = projectOf({})
  execFileSync(CP, ['-a', `${original.dir}/.`, copy.dir])
  // There the run may end.
  copy.write('go')
  expect(await copy.json('runs', 'list')).toMatchObject([{ run_id, state: 'RUNNING' }])
  const ran = await copy.servo('run', 'quick', '--key', 'of the copy')
  expect(ran).toMatchObject({ code: 0 })
  expect(await copy.json('runs', 'list')).toHaveLength(2)
  expect(await original.json('runs', 'list')).toMatchObject([{ run_id, state: 'RUNNING' }])

  const other = await copy.dev()
  expect(other.url).not.toBe(dev.url)
  await until(async () => (await copy.clientOf(other).runs.get(run_id)).run['state'] === 'SUCCEEDED', 'the copied run to end')
  expect((await copy.servo('runs', 'cancel', run_id)).code).toBe(2)
  expect(dev.isOver).toBe(false)
  expect(await original.clientOf(dev).runs.list({ limit: 10 })).toMatchObject([{ run_id, state: 'RUNNING' }])
})
