import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { allTables } from '../../src/engine/fold/state.ts'
import { PAGE_ENTRIES } from '../../src/engine/manifest/page-list.ts'
import { newestManifest } from '../../src/engine/manifest/stored-manifests.ts'
import { attachScript } from '../../src/engine/sql/attach-script.ts'
import { sqlTypes } from '../../src/engine/sql/tables.ts'
import { DAY_MS } from '../../src/lib/time.ts'
import { reportFact, runFacts, tickFact } from '../../src/testing/facts.ts'
import { paths, scope, Workspace } from '../engine/workspace.ts'
import { ask, asSet } from '../golden/queried.ts'
import { servo } from './support/servo.ts'

const tables = allTables(orchestration)
const before = process.cwd()
let folder = ''
let connection: DuckDBConnection | undefined
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo attach-'))
})
afterEach(() => {
  connection?.closeSync()
  process.chdir(before)
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

/** A DuckDB that knows nothing of Servo, in the folder of the workspace, as `duckdb -init attach.sql` is. */
async function attach(dir: string): Promise<void> {
  process.chdir(path.join(dir, paths.root))
  connection = await (
    await DuckDBInstance.create(':memory:', { autoinstall_known_extensions: 'false', autoload_known_extensions: 'false' })
  ).connect()
  await connection.run(fs.readFileSync('attach.sql', 'utf8'))
}

async function rowsOf(sql: string): Promise<Record<string, unknown>[]> {
  return (await connection!.runAndReadAll(sql)).getRowObjectsJson()
}

/** Text of every row as DuckDB writes it, to compare two ways of reaching the same tables. */
const asText = (table: string): string => `SELECT t::VARCHAR AS text FROM ${table} AS t`

/** Enough bases that the history has pages of pages, with deltas on top. */
async function longState(dir: string): Promise<Workspace> {
  const workspace = new Workspace()
  const rules = { retention: { runs: 1_000, idempotency_keys: 31 } }
  let compactor = await workspace.compactor({ ...rules, history: { full_rows: 1 } })
  for (let i = 0; i < PAGE_ENTRIES ** 2 + PAGE_ENTRIES + 2; i++) {
    await workspace.append(...runFacts(`r${i}`, { tasks: 0 }).batches.flat())
    if (i % 16 === 0)
      await workspace.append(
        reportFact(`p${i % 5}-${i}`, { partition: `p${i % 5}`, atMs: i * DAY_MS }),
        tickFact('s', workspace.clock.now()),
      )
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    // The last entries of history stay open.
    if (i === PAGE_ENTRIES ** 2 + PAGE_ENTRIES - 1) compactor = await workspace.compactor(rules)
  }
  const { batches } = runFacts('unfinished', { tasks: 2 })
  await workspace.append(...batches.slice(0, 2).flat())
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  for (const batch of batches.slice(2, 6)) {
    await workspace.append(...batch, reportFact(`l0-${workspace.clock.now()}`, { partition: 'p1' }))
    await compactor.catchUp()
    await compactor.publish({ kind: 'delta' })
  }
  await workspace.save(dir)
  return workspace
}

describe('attach.sql', () => {
  test('shows every table as servo query does, with pages of pages of history', { timeout: 300_000 }, async () => {
    const dir = path.join(folder, "it's long")
    const workspace = await longState(dir)
    const manifest = await newestManifest(workspace.store, paths, scope)
    expect(manifest.history.levels.length).toBeGreaterThan(2)
    expect(manifest.open_history).toHaveLength(2)
    // An orphan: a page that no manifest names, as a crash may leave it.
    const [page] = fs.readdirSync(path.join(dir, paths.state, '_history_pages'))
    fs.copyFileSync(
      path.join(dir, paths.state, '_history_pages', page as string),
      path.join(dir, paths.state, '_history_pages/999999999999-9-0.json'),
    )

    const written = await servo(['attach', dir])
    expect(written.stdout).toContain('duckdb -init attach.sql')
    expect(written.code).toBe(0)
    await attach(dir)
    for (const table of tables) {
      const [mine, theirs] = [await rowsOf(asText(table.name)), (await ask(dir, scope, asText(table.name))).rows]
      expect(asSet(mine), table.name).toEqual(asSet(theirs))
    }
    expect((await rowsOf('SELECT count(*)::INTEGER AS n FROM runs'))[0]).toEqual({ n: PAGE_ENTRIES ** 2 + PAGE_ENTRIES + 3 })
  })

  test('leaves out what retention has dropped', async () => {
    const dir = path.join(folder, 'dropped')
    const workspace = new Workspace(fsStore(dir))
    const compactor = await workspace.compactor({ retention: { runs: 10, idempotency_keys: 31 } })
    for (const name of ['old', 'new', 'newer']) {
      await workspace.append(...runFacts(name, { tasks: 0 }).batches.flat())
      await compactor.catchUp()
      await compactor.publish({ kind: 'base' })
      workspace.clock.pass(8 * DAY_MS)
    }
    expect((await newestManifest(workspace.store, paths, scope)).dropped).toHaveProperty('runs')
    await servo(['attach', dir])
    await attach(dir)
    const sql = 'SELECT run_key FROM runs ORDER BY run_key'
    expect(await rowsOf(sql)).toEqual([{ run_key: 'manual:new' }, { run_key: 'manual:newer' }])
    expect((await ask(dir, scope, sql)).rows).toEqual(await rowsOf(sql))
  })

  test('shows a workspace that was never folded as empty tables with their types, once it has a manifest', async () => {
    const dir = path.join(folder, 'young')
    const workspace = new Workspace(fsStore(dir))
    await workspace.append(tickFact('s', 0))
    const compactor = await workspace.compactor()
    await compactor.catchUp()
    await compactor.publish()
    await servo(['attach', dir])
    await attach(dir)
    for (const table of tables) {
      const described = await rowsOf(`DESCRIBE ${table.name}`)
      expect(Object.fromEntries(described.map((row) => [row['column_name'], row['column_type']]))).toEqual(sqlTypes(table))
    }
    expect(await rowsOf('SELECT count(*)::INTEGER AS n FROM runs')).toEqual([{ n: 0 }])
    expect(await rowsOf('SELECT count(*)::INTEGER AS n FROM schedule_ticks')).toEqual([{ n: 1 }])
  })

  test('run again shows what was published meanwhile, and leaves nothing in the database but temporary things', async () => {
    const dir = path.join(folder, 'again')
    const workspace = new Workspace(fsStore(dir))
    const compactor = await workspace.compactor()
    for (const expected of [1, 2]) {
      await workspace.append(reportFact(`r${expected}`))
      await compactor.catchUp()
      await compactor.publish()
      if (expected === 1) {
        await servo(['attach', dir])
        await attach(dir)
      } else await connection!.run(attachScript(orchestration))
      expect(await rowsOf('SELECT count(*)::INTEGER AS n FROM partition_status')).toEqual([{ n: expected }])
    }
    expect(await rowsOf('SELECT * FROM duckdb_views() WHERE NOT internal AND NOT temporary')).toEqual([])
    expect(await rowsOf('SELECT * FROM duckdb_tables() WHERE NOT internal AND NOT temporary')).toEqual([])
  })

  test('runs the examples of docs/query.md', async () => {
    const dir = path.join(folder, 'again')
    await attach(dir)
    const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/query.md'), 'utf8')
    const [, block] = /```sql\n(.*?)```/s.exec(page) ?? []
    const statements = (block as string).split(';').filter((statement) => statement.trim() !== '')
    expect(statements.length).toBe(3)
    for (const statement of statements) await rowsOf(statement)
  })
})
