import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { TestClock, Workspace } from '../engine/workspace.ts'
import { servo, shell } from './support/servo.ts'
import { lacksTerminal, Terminal } from './support/terminal.ts'

const HOSTILE = 'red\u202e 🚀 日本 "a",b'
const ESCAPES = '\u009b31mX'

let folder = ''
let dir = ''
beforeAll(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo query-'))
  dir = path.join(folder, 'one')
  fs.mkdirSync(path.join(folder, 'project/.servo'), { recursive: true })
  const workspace = new Workspace(fsStore(dir))
  const compactor = await workspace.compactor()
  await workspace.append(
    ...runFacts('a').batches.flat(),
    reportFact('r', { partition: HOSTILE }),
    reportFact('e', { partition: ESCAPES }),
  )
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  await workspace.append(...runFacts('b', { outcome: 'FAILED' }).batches.flat())
  await compactor.catchUp()
  await compactor.publish({ kind: 'delta' })
})
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }))

describe('servo query prints', () => {
  test.skipIf(lacksTerminal)('ids and times whole, however narrow the screen is, and cuts other text', async () => {
    const [id, at] = ['run_66z47jzb6xvhn222v3uqje2qp6', '2026-11-18T01:44:11.898Z']
    const sql = `select '${id}' as a, '${id}' as b, '${id}' as c, '${at}' as d, repeat('x', 90) as e`
    const shown = new Terminal(['query', dir, sql], folder)
    expect(await shown.ended).toBe(0)
    expect(shown.screen.slice(2, 3)).toEqual([`${id}  ${id}  ${id}  ${at}  xxxxxxx…`])
  })

  test('a table, numbers to the right, and the count where it is in nobody’s way', async () => {
    const { code, stdout, stderr } = await servo([
      'query',
      dir,
      "select state, tasks_total as n, 10 * tasks_total as tens, '日本' as place, error from runs order by run_key",
    ])
    expect(stdout).toBe(
      [
        'state      n  tens  place  error',
        '─────────  ─  ────  ─────  ─────',
        'SUCCEEDED  2    20  日本   null',
        'FAILED     2    20  日本   null',
        '',
      ].join('\n'),
    )
    expect(stderr).toBe('2 rows\n')
    expect(code).toBe(0)
  })

  test('JSON with real numbers, times, lists and maps, a row per line', async () => {
    const sql =
      'select run_key, tasks_total, requested_at, asset_selection, labels, trigger_source_ref, error from runs order by run_key limit 1'
    const { stdout } = await servo(['query', dir, sql, '--json'])
    expect(JSON.parse(stdout)).toEqual([
      {
        run_key: 'manual:a',
        tasks_total: 2,
        requested_at: expect.stringMatching(/^2025-01-15T10:00:00\.\d{3}Z$/),
        asset_selection: ['asset-0'],
        labels: { team: 'data' },
        trigger_source_ref: { type: 'manual', user_id: 'ada', request_id: 'a' },
        error: null,
      },
    ])
    expect(stdout.split('\n')).toHaveLength(4)
    expect((await servo(['query', dir, 'from runs where false', '--json'])).stdout).toBe('[]\n')
  })

  test('CSV that keeps apart what is empty and what is not there', async () => {
    const { stdout } = await servo(['query', dir, `select 'a,b' as "x""y", '' as empty, null as nothing, [1] as list`, '--csv'])
    expect(stdout).toBe('"x""y",empty,nothing,list\n"a,b","",,[1]\n')
  })

  test('text that would move a cursor or turn a line around as its codes', async () => {
    const sql = "select partition_key from partition_status where asset_key = 'raw' order by 1"
    const table = await servo(['query', dir, sql])
    expect(table.stdout).toContain('red\\u202e 🚀 日本 "a",b')
    expect(table.stdout).toContain('\\u009b31mX')
    const json = await servo(['query', dir, sql, '--json'])
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    expect(json.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(JSON.parse(json.stdout).map((row: { partition_key: string }) => row.partition_key)).toEqual([HOSTILE, ESCAPES])
    const error = await servo(['query', dir, 'select 1 from "\u001b[31mred"'])
    expect(error.stderr).toContain('table \\u001b[31mred')
  })
})

describe('servo query says what is wrong, and what to do', () => {
  const cases: [string, () => string[], number, RegExp][] = [
    ['an unknown table', () => [dir, 'from run'], 2, /error: table run not found\nhint: Did you mean runs\? Tables: .*runs, /],
    ['an unknown column', () => [dir, 'select stat from runs'], 2, /error: Binder Error.*stat/],
    ['bad SQL', () => [dir, 'selekt'], 2, /error: the SQL cannot be parsed/],
    [
      'a statement that writes',
      () => [dir, 'drop table runs'],
      2,
      /error: only queries are allowed here\nhint: Write one SELECT/,
    ],
    ['no such folder', () => [path.join(folder, 'nowhere'), 'select 1'], 2, /error: folder not found: .*nowhere\nhint: /],
    ['a file instead of a folder', () => [import.meta.filename, 'select 1'], 2, /error: folder not found/],
    ['a folder of something else', () => [os.tmpdir(), 'select 1'], 2, /error: .* is not a folder of Servo's state\nhint: /],
    ['the folder above', () => [path.join(folder, 'project'), 'select 1'], 2, /hint: .* Did you mean .*project\/\.servo\?/],
    ['a workspace that is not there', () => [dir, 'select 1', '--workspace', 'other'], 2, /error: workspace not found in/],
    [
      'a name that is none',
      () => [dir, 'select 1', '--tenant', '../x', '--workspace', 'w'],
      2,
      /error: tenant_id "..\/x" is not a name/,
    ],
    ['a missing query', () => [dir], 2, /error: no query given\nhint: Write it in quotes/],
    ['an unknown flag', () => [dir, 'select 1', '--jsn'], 2, /error: unknown option '--jsn'\nhint: Did you mean --json\?/],
  ]
  test.each(cases)('%s', async (_, args, code, message) => {
    const ran = await servo(['query', ...args()])
    expect(ran.stderr).toMatch(message)
    expect(ran.stderr).not.toMatch(/\n\s+at /)
    expect(ran.stdout).toBe('')
    expect(ran.code).toBe(code)
  })

  test('a damaged manifest and a damaged file are named', async () => {
    const copy = path.join(folder, 'damaged')
    fs.cpSync(dir, copy, { recursive: true })
    const state = path.join(copy, 'tenant=acme/workspace=analytics')
    const manifests = path.join(state, 'manifests/orchestration')
    const newest = path.join(manifests, fs.readdirSync(manifests).sort().at(-1) as string)
    const manifest = fs.readFileSync(newest)
    const table = path.join(state, 'state/orchestration/runs')
    const [file] = fs
      .readdirSync(path.join(table, 'history'), { recursive: true })
      .map(String)
      .filter((name) => name.endsWith('.parquet'))
    fs.writeFileSync(path.join(table, 'history', file as string), 'PAR1 this is no Parquet PAR1')
    const damagedFile = await servo(['query', copy, 'from runs'])
    expect(damagedFile.stderr).toContain(file)
    expect(damagedFile.stderr).toMatch(/hint: Run `servo verify`/)
    expect(damagedFile.code).toBe(1)
    expect((await servo(['query', copy, 'select count(*) from partition_status'])).code).toBe(0)

    manifest[20] = (manifest[20] as number) ^ 1
    fs.writeFileSync(newest, manifest)
    const damagedManifest = await servo(['query', copy, 'from runs'])
    expect(damagedManifest.stderr).toContain(path.basename(newest))
    expect(damagedManifest.code).toBe(1)
  })

  test('several workspaces are listed until one is named', async () => {
    const several = path.join(folder, 'several')
    for (const workspace_id of ['east', 'west']) {
      const scope = { tenant_id: 'acme', workspace_id }
      const [store, clock] = [fsStore(several), new TestClock()]
      const ledger = new Ledger({
        store,
        scope,
        clock,
        ulid: ulidSource(
          () => clock.now(),
          (length) => new Uint8Array(length),
        ),
        source: 'test',
      })
      await ledger.append([reportFact(workspace_id)])
      const compactor = await Compactor.open({ store, scope, registry: orchestration, clock, name: 'test' })
      await compactor.catchUp()
      await compactor.publish()
    }
    const sql = 'select workspace_id, partition_key from partition_status'
    const which = await servo(['query', several, sql])
    expect(which.stderr).toContain('--tenant acme --workspace east, or --tenant acme --workspace west')
    expect(which.code).toBe(2)
    expect((await servo(['query', several, sql, '--workspace', 'west', '--csv'])).stdout).toBe(
      'workspace_id,partition_key\nwest,west\n',
    )
  })
})

describe('servo query ends when it should', () => {
  test('a reader that has seen enough ends it, quietly', async () => {
    const { code, stdout, stderr } = await shell(`set -o pipefail; servo query '${dir}' 'from range(3000000)' --csv | head -2`)
    expect(stdout).toBe('range\n0\n')
    expect(stderr).toBe('')
    expect(code).toBe(0)
  })

  test('Ctrl-C ends it, quietly', async () => {
    const child = spawn(
      process.execPath,
      [inject('servoMain'), 'query', dir, 'select count(*) from range(100000000) a, range(100000) b'],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    let stderr = ''
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    setTimeout(() => child.kill('SIGINT'), 2_000)
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
      child.on('close', (...how) => resolve(how)),
    )
    expect({ code, signal, stderr }).toEqual({ code: null, signal: 'SIGINT', stderr: '' })
  })

  test('a stack is printed on request', async () => {
    expect((await servo(['query', dir, 'from run'], { env: { SERVO_DEBUG: '1' } })).stderr).toMatch(/\n\s+at /)
  })
})

test('servo --help and --version load neither DuckDB nor zod nor a Parquet library', async () => {
  const loaded = await shell(`NODE_DEBUG=esm servo --help 2>&1 | grep -cE 'node_modules/(zod|hyparquet|@duckdb)'`)
  expect(loaded.stdout.trim()).toBe('0')
  const help = await servo(['--help'])
  for (const command of ['query', 'verify', 'rebuild', 'attach']) expect(help.stdout).toContain(command)
})

describe('docs/query.md', () => {
  const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../docs/query.md'), 'utf8')
  const shown = [...page.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, block]) => (block as string).trim().split('\n'))
  // Those that name an asset need a project that made it: run/programs.test.ts runs them.
  const lines = shown.filter((line) => !line.includes('mart/'))

  test('shows commands', () => expect(lines.length).toBeGreaterThan(8))

  test.each(lines)('%s', async (line) => {
    fs.rmSync(path.join(folder, '.servo'), { recursive: true, force: true })
    fs.cpSync(dir, path.join(folder, '.servo'), { recursive: true })
    const { code, stderr } = await shell(line, folder)
    expect(stderr).not.toContain('error')
    expect(code).toBe(0)
  })
})
