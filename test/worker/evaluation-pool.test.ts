import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { EvaluationReport, EvaluationRequest } from '../../src/contract/evaluation.ts'
import { projectManifest } from '../../src/contract/project-manifest.ts'
import { EvaluationPool } from '../../src/worker/pool/evaluation-pool.ts'
import type { WorkerCommand } from '../../src/worker/pool/pool.ts'
import { fakeCommand } from './fake-envelope.ts'
import { isAlive, until } from './fake-pool.ts'

const NOT_LOADED = { outcome: 'unavailable', reason: 'The project cannot be loaded: a.ts:3: no' } as const

let evaluations = 0

const request = (sensor: string, timeout_ms = 60_000, cursor: string | null = null): EvaluationRequest => ({
  ...{ evaluation_id: `eval_${++evaluations}`, timeout_ms },
  ...{ of: 'poll', sensor, cursor },
})

/** A project with so many sensors that poll. */
const project = (sensors: number, conditions = 0) =>
  projectManifest.parse({
    project: 'p',
    assets: [],
    sensors: Array.from({ length: sensors }, (_, i) => ({ name: `s${i}`, config: { type: 'poll', every_ms: 60_000 } })),
    schedules: Array.from({ length: conditions }, (_, i) => ({
      ...{ name: `t${i}`, cron_expressions: ['@daily'], asset_selection: ['a'], has_condition: true },
    })),
  })

function fakeEvaluations(command: WorkerCommand = fakeCommand(), sensors = 4): EvaluationPool {
  const pool = new EvaluationPool({ now: Date.now, graceMs: 100 })
  onTestFinished(() => pool.close({ graceMs: 0 }))
  pool.loaded(project(sensors), command)
  return pool
}

/** What a body of fake-worker.ts returned. */
async function returned(pool: EvaluationPool, sensor: string): Promise<unknown> {
  const report = await pool.evaluate(request(sensor))
  return report.outcome === 'requests' && typeof report.cursor === 'string' ? JSON.parse(report.cursor) : report
}

const errorOf = (report: EvaluationReport): string => (report.outcome === 'error' ? report.error : JSON.stringify(report))

/** Evaluates while another sensor works as if nothing had happened, before, meanwhile and afterwards. */
async function harmless(pool: EvaluationPool, asked: EvaluationRequest): Promise<EvaluationReport> {
  const report = pool.evaluate(asked)
  expect(await pool.evaluate(request('noop'))).toMatchObject({ outcome: 'requests' })
  const result = await report
  expect(await pool.evaluate(request('noop'))).toMatchObject({ outcome: 'requests' })
  return result
}

describe('[A37] code of a sensor harms only its own evaluation', () => {
  test('an error that it throws', async () => {
    expect(errorOf(await harmless(fakeEvaluations(), request('throws')))).toBe('no such column')
  })

  test('process.exit', async () => {
    const report = await harmless(fakeEvaluations(), request('exits', 60_000, '3'))
    expect(errorOf(report)).toBe('The code called process.exit(3).')
  })

  test('an exit that nothing can intercept', async () => {
    expect(errorOf(await harmless(fakeEvaluations(), request('exits natively')))).toContain('because memory ran out')
  })

  test('a full heap', async () => {
    const pool = fakeEvaluations(fakeCommand('one', ['--max-old-space-size=40']))
    expect(errorOf(await harmless(pool, request('out of memory')))).toContain('ran out of memory')
  })

  test('an error that nobody catches', async () => {
    const report = await harmless(fakeEvaluations(), request('throws in a timer'))
    expect(errorOf(report)).toContain('An error was not caught: out of nowhere')
  })

  test.each(['blocks', 'ignores the signal', 'listens', 'prints and blocks'])('code that never ends: it %s', async (sensor) => {
    expect(await harmless(fakeEvaluations(), request(sensor, 300))).toEqual({ outcome: 'timed_out' })
  })

  test.each([
    ['nonsense', 'hello', /file descriptor 3 belongs to Servo/],
    [
      'an invalid result',
      '{"type":"completed","id":"eval_ID","took_ms":1,"result":{"outcome":"requests"}}',
      /not valid: .*runs/s,
    ],
  ])('%s on the pipe', async (_, line, message) => {
    const asked = request('writes to the pipe', 5_000)
    const about = { ...asked, ...(asked.of === 'poll' && { cursor: line.replace('eval_ID', asked.evaluation_id) }) }
    expect(errorOf(await harmless(fakeEvaluations(), about))).toMatch(message)
  })

  test('a line without an end on the pipe', async () => {
    const report = await harmless(fakeEvaluations(), request('floods the pipe'))
    expect(errorOf(report)).toContain('more than 256 MB without an end of line')
  })

  test('a report that is not what was asked for', async () => {
    const pool = fakeEvaluations()
    expect(errorOf(await pool.evaluate(request('reports nonsense')))).toContain('What the code reported is not valid')
    expect(errorOf(await pool.evaluate(request('answers another question')))).toContain('not what was asked for')
  })

  test.each(['prints too much', 'prints too much natively'])('code that %s', async (sensor) => {
    const pool = fakeEvaluations()
    const before = process.memoryUsage().rss
    let most = 0
    const watching = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss)
    }, 20)
    expect(await harmless(pool, request(sensor))).toMatchObject({ outcome: 'requests' })
    clearInterval(watching)
    expect(most - before).toBeLessThan(150 * 2 ** 20)
  })

  test('the end of what it printed is part of its error', async () => {
    const error = errorOf(await fakeEvaluations().evaluate(request('prints and throws')))
    expect(error).toMatch(/^it is all wrong\nIt printed:\n/)
    expect(error).toContain('line 9999')
    expect(error.length).toBeLessThan(2_200)
  })
})

describe('[A38] evaluations do not wait for others', () => {
  test('of one sensor two run at a time', async () => {
    const pool = fakeEvaluations()
    const pids = await Promise.all(Array.from({ length: 6 }, () => returned(pool, 'sleeps a little')))
    expect(new Set(pids).size).toBe(2)
  })

  test('a sensor that hangs leaves processes to all others', async () => {
    const pool = fakeEvaluations()
    const hanging = Array.from({ length: 5 }, () => pool.evaluate(request('blocks', 600_000)))
    for (let i = 0; i < 20; i++) expect(await returned(pool, 'pid')).toBeGreaterThan(0)
    await pool.close({ graceMs: 0 })
    expect(await Promise.all(hanging)).toEqual(Array(5).fill({ outcome: 'cancelled' }))
  })

  test('nothing waits in a process behind work that has been brief so far', async () => {
    const pool = fakeEvaluations()
    for (let i = 0; i < 50; i++) await pool.evaluate(request('noop'))
    void pool.evaluate(request('brief', 600_000, 'blocks for ever'))
    const others = Array.from({ length: 10 }, () => pool.evaluate(request('noop')))
    for (const report of await Promise.all(others)) expect(report.outcome).toBe('requests')
  })

  test('conditions of schedules are evaluated beside sensors', async () => {
    const pool = new EvaluationPool({ now: Date.now })
    onTestFinished(() => pool.close({ graceMs: 0 }))
    pool.loaded(project(0, 1), fakeCommand())
    const asked = {
      evaluation_id: 'c1',
      timeout_ms: 1_000,
      of: 'condition',
      schedule: 'open',
      scheduled_for: '2025-01-01T00:00:00Z',
    } as const
    expect(await pool.evaluate(asked)).toEqual({ outcome: 'condition', holds: true })
    expect(await pool.evaluate({ ...asked, evaluation_id: 'c2', schedule: 'shut' })).toEqual({
      outcome: 'condition',
      holds: false,
    })
  })
})

describe('[A39] evaluations follow the code', () => {
  test('those that run end with the code that they began with, and new ones get the new code', async () => {
    const pool = fakeEvaluations(fakeCommand('one'))
    expect(await returned(pool, 'version')).toBe('one')
    const old = returned(pool, 'sleeps a little')
    pool.loaded(project(4), fakeCommand('two'))
    expect(await returned(pool, 'version')).toBe('two')
    expect(await old).toBeGreaterThan(0)
  })

  test('before the project is loaded they wait', async () => {
    const pool = new EvaluationPool({ now: Date.now })
    onTestFinished(() => pool.close({ graceMs: 0 }))
    const early = returned(pool, 'version')
    pool.loaded(project(1), fakeCommand('one'))
    expect(await early).toBe('one')
  })

  test('[A79] while no code could be loaded they are no tries, and have the reason, until it can', async () => {
    const pool = new EvaluationPool({ now: Date.now })
    onTestFinished(() => pool.close({ graceMs: 0 }))
    pool.notLoaded([{ code: 'syntax_error', message: 'no', file: 'a.ts', line: 3 }])
    expect(await pool.evaluate(request('noop'))).toEqual(NOT_LOADED)
    expect(pool.outage()).toEqual({ reason: NOT_LOADED.reason, isResting: true })
    pool.loaded(project(1), fakeCommand('one'))
    expect(pool.outage()).toBeUndefined()
    expect(await returned(pool, 'version')).toBe('one')
    pool.notLoaded([{ code: 'syntax_error', message: 'no' }])
    expect(await returned(pool, 'version')).toBe('one')
    expect(pool.outage()).toBeUndefined()
  })

  test('[A79] after the last process that had loaded the code, all that wait are told why, at once, until the code is mended', async () => {
    const dir = mkdtempSync(path.join(tmpdir(), 'servo-broken-'))
    onTestFinished(() => rmSync(dir, { recursive: true }))
    const brokenBy = path.join(dir, 'broken')
    const command = { ...fakeCommand(), env: { BROKEN_BY: brokenBy } }
    const troubles: string[] = []
    const pool = new EvaluationPool({ now: Date.now, graceMs: 100, onTrouble: ({ message }) => troubles.push(message) })
    onTestFinished(() => pool.close({ graceMs: 0 }))
    pool.loaded(project(4), command)
    expect(await returned(pool, 'version')).toBe('one')
    writeFileSync(brokenBy, '')
    expect(errorOf(await pool.evaluate(request('exits', 60_000, '7')))).toBe('The code called process.exit(7).')
    // Each of them has a process started, and none of these can load the code while another is starting.
    const asked = ['noop', 'version', 'pid', 'sleeps a little'].map((sensor) => pool.evaluate(request(sensor)))
    expect(await Promise.all(asked)).toEqual(Array(4).fill(NOT_LOADED))
    expect(await pool.evaluate(request('noop'))).toEqual(NOT_LOADED)
    expect(pool.outage()).toEqual({ reason: NOT_LOADED.reason, isResting: true })
    expect(troubles).toEqual([`sensors and schedule conditions are waiting: ${NOT_LOADED.reason}`])
    pool.notLoaded([{ code: 'syntax_error', message: 'still not' }])
    expect(pool.outage()?.reason).toBe('The project cannot be loaded: still not')
    rmSync(brokenBy)
    pool.loaded(project(4), command)
    expect(await returned(pool, 'version')).toBe('one')
    expect(pool.outage()).toBeUndefined()
  })

  test('[A79] code that was removed is not asked, and is once it is there again', async () => {
    const pool = fakeEvaluations(fakeCommand('one'), 2)
    pool.loaded(project(1), fakeCommand('two'))
    const reason = 'The sensor s1 was removed from the project code.'
    expect(await pool.evaluate(request('s1'))).toEqual({ outcome: 'unavailable', reason })
    expect(pool.outage()).toBeUndefined()
    pool.loaded(project(2), fakeCommand('three'))
    expect(await pool.evaluate(request('s1'))).toMatchObject({ outcome: 'error' })
  })

  test('[A79] one that no process begins is given up after a while', async () => {
    const pool = new EvaluationPool({ now: Date.now, graceMs: 100, maxWaitMs: 300 })
    onTestFinished(() => pool.close({ graceMs: 0 }))
    pool.loaded(project(1), fakeCommand('never loaded'))
    const report = await pool.evaluate(request('noop'))
    expect(report).toEqual({ outcome: 'unavailable', reason: 'No worker process was free within 0.3 s.' })
  })

  test('a project without such code has no process for it', async () => {
    const pool = fakeEvaluations(fakeCommand(), 0)
    expect(errorOf(await pool.evaluate(request('noop')))).toBe('The project has no code to evaluate.')
    pool.loaded(project(1), fakeCommand())
    const pid = await returned(pool, 'pid')
    expect(isAlive(pid)).toBe(true)
    pool.loaded(project(0), fakeCommand())
    await until(() => !isAlive(pid))
  })

  test('closing cancels what runs and what waits, and leaves no process', async () => {
    const pool = fakeEvaluations()
    const pid = await returned(pool, 'pid')
    const all = ['blocks', 'listens', 'blocks', 'listens', 'blocks', 'listens'].map((sensor) => pool.evaluate(request(sensor)))
    await new Promise((resolve) => setTimeout(resolve, 300))
    await pool.close({ graceMs: 100 })
    expect(await Promise.all(all)).toEqual(Array(6).fill({ outcome: 'cancelled' }))
    expect(isAlive(pid)).toBe(false)
    expect(await pool.evaluate(request('noop'))).toEqual({ outcome: 'cancelled' })
  })

  test('what code reports because it was asked to stop does not count as its error', async () => {
    const pool = fakeEvaluations()
    // Two processes that are idle begin at once with what they get.
    await Promise.all([returned(pool, 'sleeps a little'), returned(pool, 'sleeps a little')])
    const asked = [pool.evaluate(request('listens')), pool.evaluate(request('listens'))]
    await new Promise((resolve) => setImmediate(resolve))
    await pool.close({ graceMs: 60_000 })
    expect(await Promise.all(asked)).toEqual(Array(2).fill({ outcome: 'cancelled' }))
  })

  test('closing before the project was loaded cancels what waits for it', async () => {
    const pool = new EvaluationPool({ now: Date.now })
    const early = pool.evaluate(request('noop'))
    await pool.close()
    expect(await early).toEqual({ outcome: 'cancelled' })
  })
})
