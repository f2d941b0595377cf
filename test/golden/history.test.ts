import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import type { ListQuery } from '../../src/engine/history/list-history.ts'
import type { View } from '../../src/engine/loop/view.ts'
import type { HistoryRule } from '../../src/engine/manifest/manifest.ts'
import { DAY_MS, HOUR_MS, toIso, toMs } from '../../src/lib/time.ts'
import type { Columns } from '../../src/model/column.ts'
import type { NewEvent } from '../../src/model/event.ts'
import { historyIndex } from '../../src/model/system-tables.ts'
import type { AnyRow, Table } from '../../src/model/table.ts'
import { runFacts } from '../../src/testing/facts.ts'
import { scope, Workspace } from '../engine/workspace.ts'
import { type Answer, ask, asSet, shown } from './queried.ts'

let folder = ''
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-history-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant('run' as const),
      tasks: fc.nat(2),
      outcome: fc.constantFrom('SUCCEEDED' as const, 'FAILED' as const),
      isLong: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constantFrom('delta', 'day', 'end the long ones', 'reopen') }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('base') }) },
)
type Step = { what: string; tasks?: number; outcome?: 'SUCCEEDED' | 'FAILED'; isLong?: boolean }

/** Lives through the steps, merging history by this rule. */
async function live(workspace: Workspace, steps: readonly Step[], history: HistoryRule): Promise<void> {
  let compactor = await workspace.compactor({ history })
  let long: NewEvent[][] = []
  const publish = async (kind: 'base' | 'delta'): Promise<void> => {
    await compactor.catchUp()
    await compactor.publish({ kind })
  }
  for (const [i, { what, isLong, ...shape }] of steps.entries()) {
    if (what === 'base' || what === 'delta') await publish(what)
    else if (what === 'day') workspace.clock.pass(DAY_MS - HOUR_MS)
    else if (what === 'reopen') compactor = await workspace.compactor({ history })
    else if (what === 'run') {
      const { batches } = runFacts(`r${i}`, shape)
      await workspace.append(...batches[0]!)
      if (isLong) long.push(batches.slice(1).flat())
      else if (batches.length > 1) await workspace.append(...batches.slice(1).flat())
    } else {
      for (const events of long) if (events.length > 0) await workspace.append(...events)
      long = []
    }
  }
  await publish('base')
}

const sameMoment = 'requested_at desc, run_id desc'
const conditions = ({ after, since, until, filters = {} }: ListQuery): string =>
  [
    "state in ('SUCCEEDED', 'FAILED', 'CANCELLED')",
    after && `(requested_at < '${toIso(after.at)}' or (requested_at = '${toIso(after.at)}' and run_id < '${after.id}'))`,
    since !== undefined && `requested_at >= '${toIso(since)}'`,
    until !== undefined && `requested_at < '${toIso(until)}'`,
    ...Object.entries(filters).map(([name, value]) =>
      name === 'assets' ? `list_contains(assets, '${value}')` : `${name} = '${value}'`,
    ),
  ]
    .filter((one) => typeof one === 'string')
    .join(' and ')

async function expectSameLists(dir: string, view: View, all: Answer['rows']): Promise<void> {
  const middle = all[all.length >> 1]
  const at = middle === undefined ? 0 : toMs(String(middle['requested_at']))
  const queries: ListQuery[] = [
    { limit: 5 },
    { limit: 1_000 },
    { limit: 3, filters: { state: 'FAILED' } },
    { limit: 4, filters: { assets: 'asset-1' } },
    { limit: 4, filters: { assets: 'asset-0', state: 'SUCCEEDED', trigger_type: 'manual' } },
    { limit: 2, filters: { trigger_type: 'schedule' } },
    { limit: 4, since: at },
    { limit: 4, until: at },
    { limit: 3, after: { at, id: String(middle?.['run_id']) } },
  ]
  for (const query of queries) {
    const sql = `SELECT run_id FROM runs WHERE ${conditions(query)} ORDER BY ${sameMoment} LIMIT ${query.limit}`
    const expected = (await ask(dir, scope, sql)).rows.map(({ run_id }) => run_id)
    expect(
      (await view.history.list(runs, query)).map(({ run_id }) => run_id),
      sql,
    ).toEqual(expected)
  }
}

test('[S13] whatever was sealed, and however it was merged, the reader finds the rows that DuckDB finds in the same files', {
  timeout: 240_000,
}, async () => {
  let count = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 10, maxLength: 60 }),
      fc.constantFrom(1, 15, 60, 200_000),
      fc.constantFrom(2, 4, 16),
      async (steps, full_rows, per_level) => {
        const dir = path.join(folder, `${count++}`)
        const workspace = new Workspace()
        await live(workspace, steps, { full_rows, per_level })
        await workspace.save(dir)
        const view = await workspace.view()
        const { rows: ended } = await ask(dir, scope, `FROM runs WHERE ${conditions({ limit: 0 })} ORDER BY ${sameMoment}`)
        const sql = { tasks: await ask(dir, scope, 'FROM tasks'), attempts: await ask(dir, scope, 'FROM task_attempts') }
        for (const run of ended) {
          const id = String(run['run_id'])
          const ofRun = ({ rows }: Answer): AnyRow[] => rows.filter((row) => row['run_id'] === id)
          const place = await view.lookup(historyIndex, 'runs', id)
          const found = async <C extends Columns>(table: Table<C>): Promise<string[]> =>
            asSet((await view.history.rowsOf(table, id, place)).map((row) => shown(table, scope, row)))
          expect(await found(runs)).toEqual(asSet([run]))
          expect(await found(tasks)).toEqual(asSet(ofRun(sql.tasks)))
          expect(await found(taskAttempts)).toEqual(asSet(ofRun(sql.attempts)))
        }
        await expectSameLists(dir, view, ended)
        expect((await workspace.verify()).problems).toEqual([])
      },
    ),
    { numRuns: Number(process.env['SERVO_RUNS'] ?? 6) },
  )
})
