import { expect, test } from 'vitest'
import { projectOf } from './support/project.ts'
import { beginnings, ends, TRACED } from './support/traced.ts'
import { until } from './support/until.ts'

const TASKS = 8

/** One after the other, a second each. */
const CHAIN = `${TRACED}
const made = []
for (let i = 0; i < ${TASKS}; i++) made.push(traced('t/' + i, 1_000, made.slice(-1)))
export const all = made
`

test('servo dev takes over from a servo run that leads, which follows its run there until it ends', async () => {
  const project = projectOf({ 'assets/chain.ts': CHAIN })
  const run = project.begin(['run', '*'])
  await until(() => beginnings(project).length > 0, 'the first task')
  const dev = await project.dev()
  expect(ends(project).length, 'it did not wait for the end of the run').toBeLessThan(TASKS)
  const { code, stdout } = await run.ended
  expect(stdout).toMatch(/\nsucceeded {2}run_\w{8} {2}8 tasks/)
  expect(code).toBe(0)
  expect(dev.isOver).toBe(false)
  // Each ran to its end once, the first where it was begun and the last at the new server.
  const keys = Array.from({ length: TASKS }, (_, i) => `t/${i}`)
  expect(ends(project).map(({ key }) => key)).toEqual(keys)
  expect(ends(project).at(0)?.leader).toBe(run.pid)
  expect(ends(project).at(-1)?.leader).toBe(dev.pid)
  expect(await project.json('runs', 'list')).toMatchObject([{ state: 'SUCCEEDED', tasks_succeeded: TASKS }])
})
