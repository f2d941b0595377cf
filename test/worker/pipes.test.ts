import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { dispatchEnvelope } from '../../src/contract/dispatch.ts'
import { sha256 } from '../../src/lib/hash.ts'
import { openPartition, windowText } from '../../src/sdk/partitions/partition-key.ts'
import { type AnyPartitions, daily, hourly, keys, multi } from '../../src/sdk/partitions/partitions.ts'
import { ranges } from '../../src/sdk/partitions/ranges.ts'
import { type CommandRun, executeCommand } from '../../src/worker/process/command.ts'
import { encodeParameter, type PipesContext, pipesContext } from '../../src/worker/process/pipes.ts'
import { pythonWithPackages } from '../python.ts'

interface Transcript {
  readonly name: string
  readonly script: string
  readonly context: PipesContext
  readonly messages: readonly { readonly method: string; readonly params: Record<string, unknown> }[]
}

interface Table {
  readonly vectors: readonly { readonly json: object; readonly encoded_by_node: string }[]
  readonly cases: readonly Transcript[]
}

/** What the real dagster-pipes package said, recorded. */
const tableFile = path.resolve(import.meta.dirname, '../../../shared/tables/pipes.json')
const table = fs.existsSync(tableFile) ? (JSON.parse(fs.readFileSync(tableFile, 'utf8')) as Table) : undefined

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-dagster-'))
afterAll(() => fs.rmSync(folder, { recursive: true }))

const python = pythonWithPackages('Pipes is not tested against the real package')

function running(script: string, context: PipesContext, more: Partial<CommandRun> = {}) {
  const file = path.join(folder, 's.py')
  fs.writeFileSync(file, script)
  const logs: string[] = []
  const run: CommandRun = {
    assetKey: context.asset_keys[0] ?? '',
    words: [python ?? '', file],
    cwd: folder,
    env: process.env,
    pipes: true,
    context,
    signal: new AbortController().signal,
    describing: { root: import.meta.dirname },
    retryOn: () => true,
    print: () => undefined,
    log: ({ level, text }) => void logs.push(`${level}: ${text}`),
    ...more,
  }
  return { run, logs, result: executeCommand(run) }
}

const given: PipesContext = {
  asset_keys: ['shop/orders'],
  code_version_by_asset_key: { 'shop/orders': '7' },
  provenance_by_asset_key: { 'shop/orders': null },
  partition_key: '2026-03-29',
  partition_key_range: { start: '2026-03-29', end: '2026-03-29' },
  partition_time_window: { start: '2026-03-29T00:00:00+01:00', end: '2026-03-30T00:00:00+02:00' },
  run_id: 'run_abc',
  job_name: null,
  retry_number: 1,
  extras: { limit: 5 },
}

/** What Dagster 1.13 tells programs of partitioned assets, from its own runs. */
const told: readonly {
  readonly what: string
  readonly partitions?: AnyPartitions
  readonly key?: string
  readonly keys?: readonly string[]
  readonly dagster: Pick<PipesContext, 'partition_key' | 'partition_key_range' | 'partition_time_window'>
}[] = [
  {
    what: 'no partitions',
    dagster: { partition_key: null, partition_key_range: null, partition_time_window: null },
  },
  {
    what: 'a day on which clocks go forward',
    partitions: daily({ start: '2024-01-01', timezone: 'America/New_York' }),
    key: '2024-03-10',
    dagster: {
      partition_key: '2024-03-10',
      partition_key_range: { start: '2024-03-10', end: '2024-03-10' },
      partition_time_window: { start: '2024-03-10T00:00:00-05:00', end: '2024-03-11T00:00:00-04:00' },
    },
  },
  {
    what: 'an hour before clocks go forward',
    partitions: hourly({ start: '2024-03-10-00:00', timezone: 'Europe/Berlin', format: '%Y-%m-%d-%H:%M' }),
    key: '2024-03-31-01:00',
    dagster: {
      partition_key: '2024-03-31-01:00',
      partition_key_range: { start: '2024-03-31-01:00', end: '2024-03-31-01:00' },
      partition_time_window: { start: '2024-03-31T01:00:00+01:00', end: '2024-03-31T03:00:00+02:00' },
    },
  },
  {
    what: 'a day of UTC',
    partitions: daily({ start: '2024-01-01' }),
    key: '2024-01-15',
    dagster: {
      partition_key: '2024-01-15',
      partition_key_range: { start: '2024-01-15', end: '2024-01-15' },
      partition_time_window: { start: '2024-01-15T00:00:00+00:00', end: '2024-01-16T00:00:00+00:00' },
    },
  },
  {
    what: 'a key of a list',
    partitions: keys(['eu', 'us']),
    key: 'eu',
    dagster: { partition_key: 'eu', partition_key_range: { start: 'eu', end: 'eu' }, partition_time_window: null },
  },
  {
    // Dagster calls it 2024-03-10|eu.
    what: 'a day and a region',
    partitions: multi({ date: daily({ start: '2024-01-01', timezone: 'America/New_York' }), region: keys(['eu', 'us']) }),
    key: 'date=2024-03-10,region=eu',
    dagster: {
      partition_key: 'date=2024-03-10,region=eu',
      partition_key_range: { start: 'date=2024-03-10,region=eu', end: 'date=2024-03-10,region=eu' },
      partition_time_window: { start: '2024-03-10T00:00:00-05:00', end: '2024-03-11T00:00:00-04:00' },
    },
  },
  {
    // Dagster takes no more than two dimensions, and of two that are time it tells no window.
    what: 'two dimensions of time',
    partitions: multi({ day: daily({ start: '2024-01-01' }), hour: hourly({ start: '2024-01-01T00' }) }),
    key: 'day=2024-01-02,hour=2024-01-01T05',
    dagster: {
      partition_key: 'day=2024-01-02,hour=2024-01-01T05',
      partition_key_range: { start: 'day=2024-01-02,hour=2024-01-01T05', end: 'day=2024-01-02,hour=2024-01-01T05' },
      partition_time_window: null,
    },
  },
  {
    // Dagster tells nothing of a range: neither key, range nor window.
    what: 'a range',
    partitions: ranges(daily({ start: '2024-01-01', timezone: 'America/New_York' })),
    key: '2024-03-09..2024-03-11',
    keys: ['2024-03-09', '2024-03-10', '2024-03-11'],
    dagster: {
      partition_key: null,
      partition_key_range: { start: '2024-03-09', end: '2024-03-11' },
      partition_time_window: { start: '2024-03-09T00:00:00-05:00', end: '2024-03-12T00:00:00-04:00' },
    },
  },
]

test.each(told)('a program is told of $what what Dagster tells', ({ partitions, key, keys: all, dagster }) => {
  const partition = key === undefined ? null : { key, ...(all && { keys: [...all] }) }
  const envelope = dispatchEnvelope.parse({
    ...{ task_id: 'd_1', task_key: 'a', run_id: 'run_1', attempt: 2, attempt_id: 'x', asset_key: 'a', partition, payload: {} },
  })
  const open = partitions && partition ? openPartition(partitions, partition) : undefined
  const context = pipesContext(envelope, '7', partitions && open && windowText(partitions, open))
  expect(context).toEqual({
    ...dagster,
    asset_keys: ['a'],
    code_version_by_asset_key: { a: '7' },
    // Of an asset that was made before, Dagster also tells code and input versions of the last time; null means unknown.
    provenance_by_asset_key: { a: null },
    run_id: 'run_1',
    // The name of a job, which there is none of.
    job_name: null,
    retry_number: 1,
    extras: {},
  })
})

/** A script in which Pipes is open as `c`. */
const opened = (...lines: string[]): string =>
  [
    'from dagster_pipes import open_dagster_pipes',
    'with open_dagster_pipes() as c:',
    ...lines.map((line) => `    ${line}`),
  ].join('\n')

test('parameters are what base64 and zlib make of JSON', () => {
  const decoded = JSON.parse(String(inflateSync(Buffer.from(encodeParameter(given), 'base64')))) as unknown
  expect(decoded).toEqual(given)
})

test.skipIf(table === undefined)('[shared tables] parameters are written as Node and Python both read them', () => {
  for (const { json, encoded_by_node } of table?.vectors ?? []) expect(encodeParameter(json)).toBe(encoded_by_node)
})

describe.skipIf(python === undefined)('a script that uses the dagster-pipes package runs unchanged', () => {
  test('metadata, data version, checks, logs and messages of its own are kept', async () => {
    const script = opened(
      'c.log.info("hello")',
      'c.report_asset_check("full", True, severity="WARN", metadata={"rows": 9})',
      'c.report_asset_materialization(metadata={"rows": 9, "page": {"raw_value": "http://shop", "type": "url"}}, data_version="v2")',
      'c.report_custom_message({"seen": [1, 2]})',
    )
    const { result, logs } = running(script, given)
    expect(await result).toEqual({
      outcome: 'SUCCEEDED',
      output: {
        metadata: { rows: 9, page: { raw_value: 'http://shop', type: 'url' }, custom_messages: [{ seen: [1, 2] }] },
        checks: [{ name: 'full', ok: true, severity: 'warn', metadata: { rows: 9 } }],
        data_version: 'v2',
      },
    })
    expect(logs).toEqual(['info: hello'])
  })

  test('a context that is too large for the environment is read from a file', async () => {
    const inputs = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`input${i}`, sha256(String(i))]))
    const script = opened('c.report_asset_materialization(metadata={"inputs": len(c.extras["inputs"])})')
    const { result } = running(script, { ...given, extras: { inputs } })
    expect(await result).toMatchObject({ outcome: 'SUCCEEDED', output: { metadata: { inputs: 10_000 } } })
  })

  test('numbers that JSON does not have, long integers and halves of characters are kept, and so is the failed check that has them', async () => {
    // Dagster keeps these messages: NaN and Infinity as floats, integers with all their digits.
    const odd = '{"ratio": float("nan"), "low": float("-inf"), "big": 2**63, "half": "a\\ud800b"}'
    const script = opened(
      `c.report_asset_materialization(metadata=${odd}, data_version="v1")`,
      `c.report_asset_check("full", False, metadata=${odd})`,
      `c.report_custom_message(${odd})`,
    )
    const { result, logs } = running(script, given)
    const kept = { ratio: 'NaN', low: '-Infinity', big: '9223372036854775808', half: 'a\ufffdb' }
    expect(await result).toMatchObject({
      outcome: 'FAILED',
      error: { message: expect.stringContaining('failed: full') },
      output: {
        metadata: { ...kept, custom_messages: [kept] },
        checks: [{ name: 'full', ok: false, metadata: kept }],
        data_version: 'v1',
      },
    })
    expect(logs).toEqual([])
  })

  test('lines that are no messages are left out, and harm nothing', async () => {
    const script = `import base64, json, os, zlib
where = json.loads(zlib.decompress(base64.b64decode(os.environ["DAGSTER_PIPES_MESSAGES"])))["path"]
with open(where, "a") as f:
    f.write('null\\n3\\n"text"\\n[]\\n{"method": "log", "params": 7}\\n{nonsense\\n')`
    const { result, logs } = running(script, given, { pipes: undefined })
    expect((await result).outcome).toBe('SUCCEEDED')
    expect(logs.filter((line) => line.includes('is not a Pipes message'))).toHaveLength(5)
  })

  test('one that never closes has done its work, and is told how to tell it better', async () => {
    const script = 'from dagster_pipes import open_dagster_pipes\nopen_dagster_pipes().log.info("x")'
    const { result, logs } = running(script, given)
    expect((await result).outcome).toBe('SUCCEEDED')
    expect(logs).toEqual(['info: x', expect.stringContaining('warn: The program ended without closing Pipes')])
  })

  test('one that never opens is told so only if it should have', async () => {
    for (const [pipes, expected] of [
      [true, [expect.stringContaining('never opened Pipes')]],
      [undefined, []],
    ] as const) {
      const { result, logs } = running('print("hi")', given, { pipes })
      expect((await result).outcome).toBe('SUCCEEDED')
      expect(logs).toEqual(expected)
    }
  })

  test('an exception is the failure, with its Python traceback, and what was reported before is kept', async () => {
    const script = opened('c.report_asset_materialization()', 'c.report_asset_materialization()')
    const { error, outcome } = await running(script, given).result
    expect(outcome).toBe('FAILED')
    expect(error).toMatchObject({
      category: 'user',
      message: expect.stringMatching(/DagsterPipesError: .*already been materialized/),
      retryable: true,
    })
    expect(error?.stack).toContain('s.py", line 4, in <module>')
    expect(error?.stack).toMatch(/^Traceback \(most recent call last\):/)
  })

  test('the script sees the context it was given', async () => {
    const script = opened(
      'c.report_custom_message([c.asset_key, c.partition_key, c.run_id, c.retry_number, c.code_version, c.is_partition_step, c.extras])',
    )
    const { output } = await running(script, given).result
    expect(output?.metadata).toEqual({
      custom_messages: [['shop/orders', '2026-03-29', 'run_abc', 1, '7', true, { limit: 5 }]],
    })
  })

  test('an interrupt is told in the words of Python', async () => {
    const script = `import os, signal, time\n${opened('os.kill(os.getpid(), signal.SIGINT)', 'time.sleep(5)')}`
    expect((await running(script, given).result).error).toMatchObject({ message: 'KeyboardInterrupt' })
  })

  test.skipIf(table === undefined)(
    '[shared tables] the recorded transcripts end as they did when they were recorded',
    async () => {
      for (const { name, script, context, messages } of table?.cases ?? []) {
        const { outcome, error, output } = await running(script, context).result
        const exception = messages.findLast(({ method }) => method === 'closed')?.params['exception'] as
          | { message: string }
          | undefined
        expect(outcome, name).toBe(exception === undefined ? 'SUCCEEDED' : 'FAILED')
        if (exception !== undefined) expect(error?.message, name).toBe(exception.message.trim())
        const custom = messages
          .filter(({ method }) => method === 'report_custom_message')
          .map(({ params }) => params['payload'])
        if (custom.length > 0) expect(output?.metadata?.['custom_messages'], name).toEqual(custom)
      }
    },
  )

  test('messages arrive while the script is running, and cancelling it is not its failure', async () => {
    const abort = new AbortController()
    const script = `import time\n${opened('c.log.warning("begun")', 'time.sleep(1000)')}`
    const { result } = running(script, given, { signal: abort.signal, log: () => abort.abort() })
    expect((await result).outcome).toBe('CANCELLED')
  })

  test('a check that does not pass fails the attempt unless it only warns', async () => {
    const script = (severity: string) =>
      `from dagster_pipes import open_dagster_pipes\nwith open_dagster_pipes() as c:\n    c.report_asset_check("full", False, severity="${severity}")`
    const failed = await running(script('ERROR'), given).result
    expect(failed).toMatchObject({ outcome: 'FAILED', error: { category: 'invalid' }, output: { checks: [{ ok: false }] } })
    expect((await running(script('WARN'), given).result).outcome).toBe('SUCCEEDED')
  })

  test('the cause of an exception is part of its traceback', async () => {
    const script =
      'from dagster_pipes import open_dagster_pipes\nwith open_dagster_pipes() as c:\n    try:\n        1 / 0\n    except Exception as e:\n        raise ValueError("worse") from e'
    const { error } = await running(script, given).result
    expect(error?.message).toBe('ValueError: worse')
    expect(error?.stack).toMatch(/ZeroDivisionError[\s\S]*direct cause of[\s\S]*ValueError: worse/)
  })
})
