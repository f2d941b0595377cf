import { describe, expect, test } from 'vitest'
import { envelope, fakeCommand } from './fake-envelope.ts'
import { fakePool, isAlive, returned, runLogged, until } from './fake-pool.ts'
import { PRINTED_MB } from './printed.ts'

/** The pool runs an attempt as if nothing had happened. */
async function stillWorks(pool: ReturnType<typeof fakePool>): Promise<void> {
  expect(await pool.run(envelope('noop'))).toMatchObject({ outcome: 'SUCCEEDED' })
}

describe('[W5] user code harms nobody but itself', () => {
  test('an error it throws is the result of its attempt, and its process goes on', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'pid')
    expect(await pool.run(envelope('throws'))).toMatchObject({
      outcome: 'FAILED',
      error: { category: 'user', message: 'no such column' },
    })
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test('process.exit fails the attempt, whatever the exit code, and says where it was called', async () => {
    const pool = fakePool()
    for (const code of ['0', '1', '75', '137']) {
      const { error } = await pool.run(envelope('exits', code))
      expect(error).toMatchObject({ category: 'crashed', message: `The code called process.exit(${code}).` })
      expect(error?.stack).toContain('fake-worker.ts')
    }
    await stillWorks(pool)
  })

  test('exit code 137 is explained as a kill for lack of memory', async () => {
    const pool = fakePool()
    const { outcome, error } = await pool.run(envelope('exits natively'))
    expect(outcome).toBe('FAILED')
    expect(error).toMatchObject({ category: 'crashed', message: expect.stringContaining('because memory ran out') })
    await stillWorks(pool)
  })

  test('a full heap ends one process, and the error says so', async () => {
    const pool = fakePool({ command: fakeCommand('one', ['--max-old-space-size=40']), size: 2 })
    const [full, other] = await Promise.all([pool.run(envelope('out of memory')), pool.run(envelope('sleeps a little'))])
    expect(full).toMatchObject({
      outcome: 'FAILED',
      error: { category: 'crashed', message: expect.stringContaining('ran out of memory'), retryable: true },
    })
    expect(other.outcome).toBe('SUCCEEDED')
    await stillWorks(pool)
  })

  test('a loop that never yields is killed after its timeout', async () => {
    const pool = fakePool({ graceMs: 100 })
    const result = await pool.run(envelope('blocks'), { timeoutMs: 100 })
    expect(result).toMatchObject({
      outcome: 'FAILED',
      error: { category: 'timeout', message: expect.stringContaining('0.1 s') },
    })
    await stillWorks(pool)
  })

  test('a body that listens to its signal stops at its timeout without losing its process', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'pid')
    expect(await pool.run(envelope('listens'), { timeoutMs: 50 })).toMatchObject({ error: { category: 'timeout' } })
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test('an error that nobody catches fails the attempt, and the process takes no more work', async () => {
    const pool = fakePool()
    for (const [key, message] of [
      ['rejects', 'nobody awaits this'],
      ['throws in a timer', 'out of nowhere'],
    ] as const) {
      const pid = await returned(pool, 'pid')
      const { outcome, error } = await pool.run(envelope(key))
      expect(outcome).toBe('FAILED')
      expect(error).toMatchObject({ category: 'crashed', message: expect.stringContaining(message) })
      expect(error?.stack).toContain('fake-worker.ts')
      expect(await returned(pool, 'pid')).not.toBe(pid)
    }
  })

  test('an error that an ended attempt left floating does not fail the next one', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'rejects in the next attempt')
    expect(await returned(pool, 'is the next attempt')).toBe(pid)
    expect(await returned(pool, 'pid')).not.toBe(pid)
  })

  test.each(['forks a child', 'forks an orphan', 'forks into a session of its own'])(
    '[W1] a body that %s loses it with the end of the attempt',
    async (key) => {
      const pool = fakePool({ command: { ...fakeCommand(), marker: `test:${process.pid}` } })
      const worker = await returned(pool, 'pid')
      const forked = await returned(pool, key)
      expect(forked).toBeTypeOf('number')
      await until(() => !isAlive(forked) && !isAlive(worker))
      expect(await returned(pool, 'pid')).not.toBe(worker)
    },
  )

  test('a program that has ended is no reason to change the process', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'starts a program and waits')
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test('a program that the project starts while it is loaded stays for all attempts', async () => {
    const pool = fakePool({ command: fakeCommand('with a helper') })
    const pid = await returned(pool, 'starts a program and waits')
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test.each(['hello', 'null'])('%s on the pipe ends the process that wrote it', async (nonsense) => {
    const pool = fakePool()
    expect(await pool.run(envelope('writes to the pipe', nonsense))).toMatchObject({
      outcome: 'FAILED',
      error: { category: 'crashed', stack: expect.stringContaining('file descriptor 3') },
    })
    await stillWorks(pool)
  })

  test.each([
    ['reports another file', /output\.path must be a path below the output_folder/],
    ['reports less than nothing', /output\.rows .*>=0/],
  ])('a body that %s fails, and is not tried again', async (key, message) => {
    const pool = fakePool()
    expect(await pool.run(envelope(key))).toEqual({
      outcome: 'FAILED',
      error: { category: 'invalid', message: expect.stringMatching(message), retryable: false },
    })
    await stillWorks(pool)
  })

  test('a process that holds much memory makes room for a fresh one', async () => {
    const pool = fakePool({ maxResidentBytes: 250 * 2 ** 20 })
    const pid = await returned(pool, 'holds memory')
    expect(await returned(pool, 'pid')).not.toBe(pid)
  })

  test('a process that has served its number of attempts makes room for a fresh one', async () => {
    const pool = fakePool({ maxServed: 2 })
    const pids = [await returned(pool, 'pid'), await returned(pool, 'pid'), await returned(pool, 'pid')]
    expect(pids[1]).toBe(pids[0])
    expect(pids[2]).not.toBe(pids[0])
  })
})

describe('printing', () => {
  const MB = 2 ** 20

  test.each(['prints too much', 'prints too much natively'])('[W5] a body that %s keeps 16 MB of it', async (key) => {
    const pool = fakePool({ maxResidentBytes: 2 ** 40 })
    const pid = await returned(pool, 'pid')
    const { result, entries } = await runLogged(pool, key)
    expect(result.outcome).toBe('SUCCEEDED')
    const dropped = Number.parseFloat(entries.at(-1)?.text.match(/^[\d.]+(?= MB of output were dropped)/)?.[0] ?? '')
    const size = entries.slice(0, -1).reduce((sum, { text }) => sum + text.length, 0)
    expect(size).toBeGreaterThan(15.5 * MB)
    expect(size).toBeLessThan(16.5 * MB)
    expect(Math.abs(dropped * 1e6 + size - PRINTED_MB * MB)).toBeLessThan(MB)
    expect(await returned(pool, 'pid')).toBe(pid)
  })

  test('the orchestrator goes on while a body prints as fast as it can', async () => {
    const pool = fakePool({ size: 2, warm: 2, graceMs: 0 })
    await Promise.all([returned(pool, 'sleeps a little'), returned(pool, 'sleeps a little')])
    const flood = envelope('prints and blocks')
    const heard: unknown[] = []
    const flooding = pool.run(flood, { onLog: (entries) => void heard.push(...entries) })
    await until(() => heard.length > 1_000)
    expect(await pool.run(envelope('noop'))).toMatchObject({ outcome: 'SUCCEEDED' })
    pool.cancel(flood.attempt_id)
    expect((await flooding).outcome).toBe('CANCELLED')
  })

  test('console, streams and callbacks arrive in order, with level and stream', async () => {
    const { entries } = await runLogged(fakePool(), 'prints in many ways')
    const plain = entries.map(({ stream, level, text }) => [stream, level, text])
    expect(plain).toEqual([
      ['stdout', 'debug', 'quiet'],
      ['stdout', 'info', 'a kind of 3'],
      ['stderr', 'warn', 'careful'],
      ['stderr', 'error', 'bad\nworse'],
      ['stdout', undefined, 'half a line'],
      ['stdout', undefined, 'hi'],
      ['stderr', undefined, 'no newline at the end'],
    ])
  })

  test('what the context logs keeps its fields', async () => {
    const { entries } = await runLogged(fakePool(), 'says')
    expect(entries).toEqual([{ at: 1, stream: 'log', level: 'info', text: 'says', fields: { a: 1 } }])
  })

  test('what a body says right before its process is killed is kept', async () => {
    const { texts } = await runLogged(fakePool(), 'says why and is killed')
    expect(texts).toEqual(['one', 'two', 'three'])
  })

  test('what a grandchild writes belongs to the attempt', async () => {
    const { texts } = await runLogged(fakePool(), 'starts a program and waits')
    expect(texts).toEqual(['from a grandchild'])
  })

  test('code that floats on after its attempt is not heard in the next', async () => {
    const pool = fakePool()
    const pid = await returned(pool, 'floats on')
    const { texts, result } = await runLogged(pool, 'sleeps a little')
    expect(result.output?.metadata['value']).toBe(pid)
    expect(texts).toEqual([])
  })

  test('two hundred attempts on three processes keep their logs apart', async () => {
    const pool = fakePool({ size: 3, warm: 3 })
    await Promise.all(
      Array.from({ length: 200 }, async () => {
        const work = envelope('speaks for itself')
        const texts: string[] = []
        const result = await pool.run(work, { onLog: (entries) => void texts.push(...entries.map(({ text }) => text)) })
        expect(result.outcome).toBe('SUCCEEDED')
        expect(texts).toEqual(Array(40).fill(work.attempt_id))
      }),
    )
  })
})
