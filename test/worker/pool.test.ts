import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { groupMembers } from '../../src/worker/group.ts'
import { envelope, fakeCommand } from './fake-envelope.ts'
import { fakePool, isAlive, returned, until } from './fake-pool.ts'

describe('loading', () => {
  test('the first process tells what the project declares', async () => {
    expect(await fakePool().ready()).toEqual({ type: 'loaded', secret_variables: [], manifest: { project: 'one', assets: [] } })
  })

  test('a project that cannot be loaded fails its attempts with the place of the mistake', async () => {
    const pool = fakePool({ command: fakeCommand('broken') })
    expect(await pool.ready()).toMatchObject({ type: 'load_failed', problems: [{ code: 'syntax_error' }] })
    expect(await pool.run(envelope('noop'))).toMatchObject({
      outcome: 'FAILED',
      error: { message: 'The project cannot be loaded: a.ts:3: no' },
    })
  })

  test('a project that ends the process while it is loaded says so', async () => {
    const pool = fakePool({ command: fakeCommand('exits while loading'), warm: 2, size: 2 })
    expect(await pool.ready()).toMatchObject({
      type: 'load_failed',
      problems: [{ message: expect.stringContaining('exit code 3') }],
    })
    expect(await pool.run(envelope('noop'))).toMatchObject({
      outcome: 'FAILED',
      error: { message: expect.stringContaining('exit code 3') },
    })
  })

  test('a program that is not there is a failure to load', async () => {
    const pool = fakePool({ command: { file: path.join(os.tmpdir(), 'no-such-program'), args: [] } })
    expect(await pool.ready()).toMatchObject({
      type: 'load_failed',
      problems: [{ message: expect.stringContaining('ENOENT') }],
    })
    expect(await pool.run(envelope('noop'))).toMatchObject({ outcome: 'FAILED' })
  })
})

describe('attempts', () => {
  test('more attempts than processes wait for their turn', async () => {
    const pool = fakePool({ size: 2, warm: 1 })
    const results = Array.from({ length: 7 }, () => pool.run(envelope('sleeps a little')))
    expect(pool.idle).toBe(0)
    const pids = new Set((await Promise.all(results)).map(({ output }) => output?.metadata['value']))
    expect(pids.size).toBe(2)
    expect(pool.idle).toBe(2)
  })

  test('the same attempt asked for twice runs once', async () => {
    const pool = fakePool({ size: 2 })
    const work = envelope('sleeps a little')
    expect(pool.run(work)).toBe(pool.run(work))
  })

  test('a cancelled attempt that listens ends at once, and its process goes on', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'pid')
    const work = envelope('listens')
    const result = pool.run(work, { onLog: () => pool.cancel(work.attempt_id, { graceMs: 60_000 }) })
    expect((await result).outcome).toBe('CANCELLED')
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test.each(['ignores the signal', 'blocks'])('a cancelled attempt that %s is killed after the grace', async (key) => {
    const pool = fakePool()
    const pid = await returned(pool, 'pid')
    const work = envelope(key)
    const result = pool.run(work)
    expect(pool.cancel(work.attempt_id, { graceMs: 50 })).toBe(true)
    expect((await result).outcome).toBe('CANCELLED')
    expect(isAlive(pid)).toBe(false)
    expect(await returned(pool, 'pid')).not.toBe(pid)
  })

  test('an attempt that waits is cancelled without having begun', async () => {
    const pool = fakePool()
    const first = pool.run(envelope('sleeps a little'))
    const work = envelope('exits')
    const result = pool.run(work)
    pool.cancel(work.attempt_id)
    expect((await result).outcome).toBe('CANCELLED')
    expect((await first).outcome).toBe('SUCCEEDED')
  })

  test('cancelling what is not there says so', () => {
    expect(fakePool().cancel('att_of_nobody')).toBe(false)
  })
})

test('a minute without work ends all processes but the warm ones, and the one that worked last stays', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const pool = fakePool({ size: 3, warm: 1 })
  const attempts = ['first', 'second', 'third'].map(() => {
    const work = envelope('listens')
    const pid = Promise.withResolvers<number>()
    const result = pool.run(work, { onLog: ([entry]) => pid.resolve(Number(entry?.text)) })
    const stop = () => {
      pool.cancel(work.attempt_id)
      return result
    }
    return { pid: pid.promise, stop }
  })
  const pids = await Promise.all(attempts.map(({ pid }) => pid))
  expect(new Set(pids).size).toBe(3)
  for (const { stop } of attempts) await stop()
  vi.advanceTimersByTime(59_000)
  await new Promise(setImmediate)
  expect(pids.map(isAlive)).toEqual([true, true, true])
  vi.advanceTimersByTime(1_000)
  vi.useRealTimers()
  await until(() => pids.filter(isAlive).length === 1)
  expect(await returned(pool, 'pid')).toBe(pids[2])
})

describe('replacing the code', () => {
  test('running attempts finish in the old code, new ones go to the new, and the old processes leave', async () => {
    const pool = fakePool({ size: 2, warm: 2 })
    const old = await returned(pool, 'pid')
    const running = pool.run(envelope('sleeps a little'))
    expect(await pool.replace(fakeCommand('two'))).toMatchObject({ type: 'loaded', manifest: { project: 'two' } })
    expect(await returned(pool, 'version')).toBe('two')
    expect(await running).toMatchObject({ outcome: 'SUCCEEDED' })
    await until(() => !isAlive(old))
    expect(await pool.ready()).toMatchObject({ manifest: { project: 'two' } })
  })

  test('code that cannot be loaded leaves the old code at work', async () => {
    const pool = fakePool()
    await pool.ready()
    expect(await pool.replace(fakeCommand('broken'))).toMatchObject({ type: 'load_failed' })
    expect(await returned(pool, 'version')).toBe('one')
  })

  test('good code after broken code is taken up', async () => {
    const pool = fakePool({ command: fakeCommand('broken') })
    await pool.ready()
    expect(await pool.replace(fakeCommand('two'))).toMatchObject({ type: 'loaded' })
    expect(await returned(pool, 'version')).toBe('two')
  })

  test('of several replacements at once the last one stays', async () => {
    const pool = fakePool()
    await Promise.all(['two', 'three', 'four'].map((version) => pool.replace(fakeCommand(version))))
    expect(await returned(pool, 'version')).toBe('four')
  })

  test('no attempt is lost while the code is replaced again and again', async () => {
    const pool = fakePool({ size: 3, warm: 1 })
    await pool.ready()
    const attempts = Array.from({ length: 60 }, () => pool.run(envelope('sleeps a little')))
    for (const version of ['two', 'three', 'four']) await pool.replace(fakeCommand(version))
    const outcomes = (await Promise.all(attempts)).map(({ outcome }) => outcome)
    expect(new Set(outcomes)).toEqual(new Set(['SUCCEEDED']))
  })
})

describe('the end', () => {
  test('closing cancels what runs and waits, and leaves no process', async () => {
    const pool = fakePool({ size: 2, warm: 2 })
    const pids = await Promise.all([returned(pool, 'sleeps a little'), returned(pool, 'sleeps a little')])
    const attempts = ['listens', 'blocks', 'noop', 'noop'].map((key) => pool.run(envelope(key)))
    await pool.close({ graceMs: 100 })
    expect((await Promise.all(attempts)).map(({ outcome }) => outcome)).toEqual(Array(4).fill('CANCELLED'))
    for (const pid of pids) {
      expect(pid).toBeTypeOf('number')
      expect(groupMembers(pid as number)).toEqual([])
    }
    expect((await pool.run(envelope('noop'))).outcome).toBe('CANCELLED')
  })

  test('closing while processes are starting leaves none', async () => {
    const pool = fakePool({ size: 3, warm: 3 })
    await pool.close()
    expect(await pool.ready()).toMatchObject({ type: 'load_failed' })
  })

  test('an orchestrator killed with -9 leaves no process, not even one that never yields and has forked', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-worker-'))
    onTestFinished(() => fs.rmSync(folder, { recursive: true }))
    const pidFile = path.join(folder, 'pid')
    const parent = spawn(process.execPath, [path.join(import.meta.dirname, 'parent.ts'), 'forks and blocks', pidFile], {
      stdio: 'inherit',
    })
    await until(() => fs.existsSync(pidFile) && fs.readFileSync(pidFile, 'utf8') !== '')
    const worker = Number(fs.readFileSync(pidFile, 'utf8'))
    const forked = Number(fs.readFileSync(`${pidFile}.child`, 'utf8'))
    expect([worker, forked].map(isAlive)).toEqual([true, true])
    parent.kill('SIGKILL')
    await until(() => !isAlive(worker) && !isAlive(forked))
  })
})
