import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AttemptResult, DispatchEnvelope, InputRef } from '../../src/contract/dispatch.ts'
import type { LogEntry } from '../../src/contract/pipe.ts'
import { workerCommand } from '../../src/server/machine/worker-command.ts'
import { WorkerPool } from '../../src/worker/pool/pool.ts'
import { envelope } from './fake-envelope.ts'
import { isAlive, until } from './fake-pool.ts'

describe('a worker process with a project', () => {
  // Such names are common above data; DuckDB must not take them for columns.
  const data = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'servo-data-')), 'tenant=acme')
  let pool: WorkerPool

  beforeAll(async () => {
    // A leader has its lease in there before it starts a worker.
    fs.mkdirSync(data)
    pool = new WorkerPool({
      command: workerCommand(path.join(import.meta.dirname, 'project'), data),
      size: 2,
      warm: 1,
      now: Date.now,
    })
    expect(await pool.ready()).toMatchObject({ type: 'loaded', manifest: { project: 'worker-test' } })
  })
  afterAll(async () => {
    await pool.close()
    fs.rmSync(path.dirname(data), { recursive: true })
  })

  async function run(key: string, inputs: Record<string, [string, string, AttemptResult]> = {}, partition?: string) {
    const logs: LogEntry[] = []
    const values = Object.entries(inputs).map(([name, [asset_key, io, { materialization_id, output }]]) => {
      const stored = { partition_key: '', materialization_id: materialization_id ?? '', path: output?.path }
      return [name, { asset_key, io, many: false, values: [stored] }] as [string, InputRef]
    })
    const plain = envelope(key, partition)
    const work: DispatchEnvelope = { ...plain, payload: { ...plain.payload, inputs: Object.fromEntries(values) } }
    const result = await pool.run(work, { onLog: (entries) => void logs.push(...entries) })
    return { result, texts: logs.map(({ text }) => text), logs, work }
  }

  test('values and rows go from asset to asset through the data folder', async () => {
    const { result: rates } = await run('rates')
    expect(rates).toMatchObject({ outcome: 'SUCCEEDED', code_version: expect.any(String), output: { bytes: 19 } })
    expect(rates.output?.path).toBe(`data/rates/_/${rates.materialization_id}.json`)
    expect(fs.readFileSync(path.join(data, rates.output?.path ?? ''), 'utf8')).toBe('{"eur":1,"usd":1.1}')

    const { result: orders, logs } = await run('raw/orders', { rates: ['rates', 'json', rates] })
    expect(orders).toMatchObject({ outcome: 'SUCCEEDED', output: { rows: 3 } })
    expect(logs).toMatchObject([{ level: 'info', text: 'making orders', fields: { rates: { eur: 1 } } }])

    const { result: total } = await run('mart/total', { orders: ['raw/orders', 'parquet', orders] })
    expect(total).toMatchObject({ outcome: 'SUCCEEDED', output: { rows: 1 } })
    const instance = await DuckDBInstance.create(':memory:')
    const connection = await instance.connect()
    const file = path.join(data, total.output?.path ?? '')
    const reader = await connection.runAndReadAll(`SELECT * FROM read_parquet('${file}', hive_partitioning = false)`)
    expect(reader.getRowObjectsJS()).toEqual([{ orders: 3n, amount: 6.6000000000000005, last: new Date(Date.UTC(2025, 0, 3)) }])
    connection.closeSync()
    instance.closeSync()

    const { result: columns } = await run('columns', { orders: ['raw/orders', 'parquet', orders] })
    const names = fs.readFileSync(path.join(data, columns.output?.path ?? ''), 'utf8')
    expect(names).toBe('["id","amount","placed","note","tags"]')
  })

  test('[D6] two executions of one asset write to different places, and equal values have equal versions', async () => {
    const [one, two] = [(await run('rates')).result, (await run('rates')).result]
    expect(one.output?.path).not.toBe(two.output?.path)
    expect(one.output?.data_version).toBe(two.output?.data_version)
  })

  test('an asset that the project does not have fails with its name', async () => {
    expect((await run('nothing')).result).toMatchObject({
      outcome: 'FAILED',
      error: { message: expect.stringContaining('nothing') },
    })
  })

  test('Fatal is not tried again', async () => {
    expect((await run('hopeless')).result).toMatchObject({ error: { category: 'fatal', retryable: false, message: 'never' } })
  })

  test('a command gets its partition as an argument, and what it prints is its log', async () => {
    const { result, logs } = await run('greeting', {}, '2025-01-02')
    expect(result.outcome).toBe('SUCCEEDED')
    const said = logs.map(({ stream, text }) => `${stream}: ${text}`).sort()
    expect(said).toEqual(['stderr: oops', 'stdout: hello 2025-01-02'])
  })

  test('a command that ends badly fails with its exit code and last words', async () => {
    const { result } = await run('failing')
    expect(result.error).toMatchObject({ category: 'user', message: 'sh ended with exit code 3', retryable: true })
    expect(result.error?.stack).toContain('bad news')
  })

  test('the error names a program that is not there', async () => {
    expect((await run('missing')).result.error).toMatchObject({ message: expect.stringContaining('no-such-program-at-all') })
  })

  test('a cancelled command is killed with everything it started, though it ignores SIGTERM', async () => {
    const work = envelope('stubborn')
    let pids: number[] = []
    const result = pool.run(work, {
      onLog: ([entry]) => {
        pids = (entry?.text ?? '').split(' ').map(Number)
        pool.cancel(work.attempt_id, { graceMs: 60_000 })
      },
    })
    expect(await result).toMatchObject({
      outcome: 'CANCELLED',
      error: { message: 'sh did not stop when the run was cancelled, so it was killed' },
    })
    expect(pids).toHaveLength(2)
    await until(() => !pids.some(isAlive))
  })
})

test('a project that is not there is a problem with a way out', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-none-'))
  const pool = new WorkerPool({ command: workerCommand(folder, folder), size: 1, now: Date.now })
  expect(await pool.ready()).toMatchObject({ type: 'load_failed', problems: [{ code: 'missing_config' }] })
  await pool.close()
  fs.rmSync(folder, { recursive: true })
})
