import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { EvaluationRequest } from '../../src/contract/evaluation.ts'
import { projectManifest } from '../../src/contract/project-manifest.ts'
import { workerCommand } from '../../src/server/machine/worker-command.ts'
import { EvaluationPool } from '../../src/worker/pool/evaluation-pool.ts'
import { WorkerPool } from '../../src/worker/pool/pool.ts'

const data = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-data-'))
const printed: string[][] = []
const evaluations = new EvaluationPool({ now: Date.now, onPrinted: (...words) => printed.push(words) })

beforeAll(async () => {
  const command = workerCommand(path.join(import.meta.dirname, 'project'), data)
  const pool = new WorkerPool({ command, size: 1, warm: 1, now: Date.now })
  const loaded = await pool.ready()
  await pool.close()
  if (loaded.type === 'load_failed') throw new Error(JSON.stringify(loaded.problems))
  const manifest = projectManifest.parse(loaded.manifest)
  expect(manifest.sensors).toMatchObject([
    { name: 'broken' },
    { name: 'large' },
    { name: 'orders', code_version: expect.any(String) },
  ])
  evaluations.loaded(manifest, command)
})
afterAll(async () => {
  await evaluations.close()
  fs.rmSync(data, { recursive: true })
})

const message = (sensor: string, payload: unknown): EvaluationRequest => ({
  ...{ evaluation_id: `eval_${sensor}_${JSON.stringify(payload)}`, timeout_ms: 10_000 },
  ...{ of: 'message', sensor, message: { id: 'msg_1', data: payload, attributes: {}, published_at: null } },
})

test('a message goes through the code of its sensor, which has its resources', async () => {
  expect(await evaluations.evaluate(message('orders', { order: 'o1' }))).toEqual({
    outcome: 'requests',
    runs: [{ asset_selection: ['rates'], key: 'msg_1', labels: { order: 'o1', year: '2025' } }],
  })
})

test('[A36] a message that does not fit is an error that says why', async () => {
  const report = await evaluations.evaluate(message('orders', { order: 1 }))
  expect(report).toMatchObject({
    error: expect.stringMatching(/^order does not match the schema: /),
    unfit_field: 'order',
  })
})

test('[A37] an error says where in the code it was thrown, and what was printed before', async () => {
  expect(await evaluations.evaluate(message('broken', null))).toEqual({
    outcome: 'error',
    error: 'TypeError: no such table\n    at on (assets/sensors.ts:18:11)\nIt printed:\nlooking for the table',
  })
})

test('[A37] a result that is too large does not leave its process', async () => {
  const asked = { evaluation_id: 'large', timeout_ms: 10_000, of: 'poll', sensor: 'large', cursor: null } as const
  expect(await evaluations.evaluate(asked)).toMatchObject({ error: expect.stringContaining('The result has 1000') })
})

test('a sensor that is not there is an error', async () => {
  const report = await evaluations.evaluate(message('gone', null))
  expect(report).toMatchObject({ error: expect.stringContaining('the project no longer declares the sensor gone') })
})

test('the condition of a schedule is asked for the moment of its tick', async () => {
  const asked = (scheduled_for: string): EvaluationRequest => ({
    ...{ evaluation_id: scheduled_for, timeout_ms: 10_000 },
    ...{ of: 'condition', schedule: 'nightly', scheduled_for },
  })
  expect(await evaluations.evaluate(asked('2025-03-01T00:00:00Z'))).toMatchObject({ holds: true })
  expect(await evaluations.evaluate(asked('2025-03-02T00:00:00Z'))).toEqual({
    outcome: 'condition',
    holds: false,
    reason: 'it is Sunday',
  })
  expect(printed, 'what it prints is told, and no part of the answer').toEqual([['schedule nightly', 'day 0']])
})
