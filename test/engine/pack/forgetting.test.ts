import { expect, test } from 'vitest'
import { runValues } from '../../../src/domain/runs/run-values.table.ts'
import { TaskFinished } from '../../../src/domain/tasks/task-finished.event.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import { type NewEvent, newEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { paths, Workspace } from '../workspace.ts'
import { packAll, packerOf, publishNext } from './packed-days.ts'

const SECRET = '{"amount":"to be forgotten"}'

/** A run of two tasks, the second of which waits for the value of the first. */
function longRun(): NewEvent[][] {
  return runFacts('long', { tasks: 2 }).batches.map((batch) =>
    batch.map((event) => {
      if (event.definition !== TaskFinished) return event
      const payload = event.payload as Parameters<typeof TaskFinished.idempotencyKey>[0]
      return newEvent(TaskFinished, { ...payload, output: { value: SECRET, bytes: SECRET.length, sha256: sha256(SECRET) } })
    }),
  )
}

/** Values are forgotten in a day that is packed. */
const findForgotten = async (events: readonly Envelope[]) =>
  events.map((event) => JSON.stringify(event).includes('to be forgotten'))

test.each(['delta', 'base'] as const)(
  '[L11] a value that others of a run waited for is forgotten after the run has ended, and a replay still makes the same files (%s)',
  async (kind) => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const batches = longRun()
    const half = batches.findIndex((batch) => batch.some(({ definition }) => definition === TaskFinished)) + 1
    await workspace.appendAll(batches.slice(0, half))
    await compactor.catchUp()
    await compactor.publish({ kind })
    expect([...compactor.state.hot(runValues).all()]).toMatchObject([{ value: SECRET }])

    // Days later the run goes on and ends; its value leaves the table, in a file of its own.
    workspace.clock.pass(3 * DAY_MS)
    for (const name of ['closes', 'settles']) await publishNext(workspace, compactor, reportFact(name))
    await workspace.appendAll(batches.slice(half))
    await compactor.catchUp()
    await compactor.publish({ kind: 'delta' })
    expect((await workspace.paths(paths.table('run_values'))).some((path) => path.includes('/removed/'))).toBe(true)
    await packAll(packerOf(workspace, compactor, { findForgotten }))
    expect(await workspace.paths(paths.archives)).toHaveLength(1)

    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], replayed: true })
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', problems: [], left: [] })
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [] })
  },
)

test('[L11] a value that is forgotten while tables still have it is left out when they are compared', async () => {
  const workspace = new Workspace()
  const compactor = await workspace.compactor()
  const batches = longRun()
  const half = batches.findIndex((batch) => batch.some(({ definition }) => definition === TaskFinished)) + 1
  await workspace.appendAll(batches.slice(0, half))
  await compactor.catchUp()
  await compactor.publish({ kind: 'delta' })
  workspace.clock.pass(3 * DAY_MS)
  for (const name of ['closes', 'settles']) await publishNext(workspace, compactor, reportFact(name))
  await packAll(packerOf(workspace, compactor, { findForgotten }))
  expect([...compactor.state.hot(runValues).all()]).toMatchObject([{ value: SECRET }])
  expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], replayed: true })
})
