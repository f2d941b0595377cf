import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { allTables } from '../../src/engine/fold/state.ts'
import { encodeSegment } from '../../src/engine/ledger/segment.ts'
import { newestManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { sqlTypes } from '../../src/engine/sql/tables.ts'
import { canonicalJson } from '../../src/lib/json.ts'
import { DAY_MS } from '../../src/lib/time.ts'
import { ulidFloor } from '../../src/lib/ulid.ts'
import { historyIndex, parkedEvents } from '../../src/model/system-tables.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { reportFact, runFacts, tickFact, wipeFact } from '../../src/testing/facts.ts'
import { histories } from '../../src/testing/histories/histories.ts'
import { storedRows } from '../../src/testing/stored-rows.ts'
import { paths, scope, Workspace } from '../engine/workspace.ts'
import { ask, asSet, shown } from './queried.ts'

const tables = allTables(orchestration)
let folder = ''
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-tables-'))
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** Every table of a folder, asked in SQL, has the rows that its files lead to when read by the engine. */
async function expectSameRows(dir: string): Promise<void> {
  const stored = await storedRows(fsStore(dir), scope, orchestration)
  for (const table of tables) {
    // The engine's snapshot leaves these out, because they depend on when things were published.
    if (table.name === historyIndex.name) continue
    const { rows } = await ask(dir, scope, `FROM ${table.name}`)
    const without = table.name === parkedEvents.name ? { parked_at: null } : {}
    const expected = (stored[table.name] ?? []).map((row) => ({ ...shown(table, scope, row), ...without }))
    expect(asSet(rows.map((row): AnyRow => ({ ...row, ...without }))), table.name).toEqual(asSet(expected))
  }
}

describe('a workspace without any file', () => {
  test.each(tables)('has the table $name, empty and with its types', async (table) => {
    const dir = path.join(folder, 'empty')
    fs.mkdirSync(dir, { recursive: true })
    const { columns, rows } = await ask(dir, scope, `FROM ${table.name}`)
    expect(columns).toEqual(
      Object.fromEntries(Object.entries(sqlTypes(table)).map(([name, type]) => [name, type === 'JSON' ? 'JSON' : type])),
    )
    expect(rows).toEqual([])
  })
})

describe('a workspace with base, deltas, removals, history and sorted files of two levels', () => {
  let dir = ''
  beforeAll(async () => {
    dir = path.join(folder, 'full')
    const workspace = new Workspace()
    // Enough entries of history for a page of its list, and some that are open.
    let compactor = await workspace.compactor({ history: { full_rows: 1 } })
    const publish = async (kind: 'base' | 'delta'): Promise<void> => {
      await compactor.catchUp()
      await compactor.publish({ kind })
    }
    for (let i = 0; i < 20; i++) {
      await workspace.append(...runFacts(`r${i}`, { tasks: i % 3 }).batches.flat())
      await workspace.append(
        reportFact(`report-${i}`, { partition: `p${i % 7}`, atMs: DAY_MS * i }),
        tickFact('s', workspace.clock.now()),
      )
      if (i % 5 === 0) await workspace.append(wipeFact(`wipe-${i}`, { partition: `p${i % 7}` }))
      await publish('base')
      if (i === 17) compactor = await workspace.compactor()
    }
    const { batches } = runFacts('unfinished', { tasks: 3 })
    await workspace.append(...batches.slice(0, 2).flat())
    await publish('base')
    for (const [i, batch] of batches.slice(2, 9).entries()) {
      await workspace.append(...batch, reportFact(`l0-${i}`, { partition: `p${i}`, atMs: DAY_MS * (i - 3) }))
      await publish('delta')
    }
    await workspace.save(dir)
  })

  test('really has all of these files', async () => {
    const manifest = await newestManifest(fsStore(dir), paths, scope)
    expect(manifest.base.tables).toHaveProperty('tasks')
    expect(manifest.l0.length).toBeGreaterThan(5)
    expect(manifest.l0.some((delta) => delta.tables['timers']?.removed !== undefined)).toBe(true)
    expect(new Set(manifest.sorted_files['partition_status']?.map((file) => file.level))).toEqual(new Set([0, 1]))
    expect(manifest.history.levels[1]).toHaveLength(1)
    expect(manifest.open_history).toHaveLength(2)
  })

  test('shows the rows that the engine reads', { timeout: 120_000 }, async () => await expectSameRows(dir))

  test.each(tables)('gives $name the declared types', async (table) => {
    const { columns } = await ask(dir, scope, `SELECT * FROM ${table.name} LIMIT 0`)
    expect(columns).toEqual(sqlTypes(table))
  })

  test('[S1] says of ended work where its rows are', async () => {
    const { rows } = await ask(
      dir,
      scope,
      'SELECT owner, count(*) AS count, min(publish) AS first FROM history_index GROUP BY owner',
    )
    expect(rows).toEqual([{ owner: 'runs', count: 20, first: 1 }])
  })
})

test('whatever happened, and however it was published, SQL shows the rows that the engine reads', {
  timeout: 240_000,
}, async () => {
  const plan = fc.array(fc.constantFrom('base' as const, 'delta' as const, 'delta' as const, 'nothing' as const), {
    minLength: 2,
    maxLength: 6,
  })
  let count = 0
  await fc.assert(
    fc.asyncProperty(histories(), plan, fc.integer({ min: 1, max: 20 }), async (history, todo, size) => {
      const dir = path.join(folder, `history-${count++}`)
      const workspace = new Workspace()
      const compactor = await workspace.compactor()
      for (let start = 0, step = 0; start < history.events.length; start += size, step++) {
        workspace.clock.pass(1_000)
        const texts = history.events.slice(start, start + size).map((event) => canonicalJson(event))
        const ulid = ulidFloor(workspace.clock.now())
        await workspace.store.create(paths.segment(ulid), encodeSegment(ulid, texts))
        const kind = todo[step % todo.length]
        if (kind === 'nothing') continue
        await compactor.catchUp()
        await compactor.publish({ kind: kind as 'base' | 'delta' })
      }
      await workspace.save(dir)
      await expectSameRows(dir)
    }),
    { numRuns: Number(process.env['SERVO_RUNS'] ?? 4) },
  )
})
