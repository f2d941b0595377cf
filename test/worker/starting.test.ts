import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test } from 'vitest'
import { envelope, fakeCommand } from './fake-envelope.ts'
import { fakePool, returned, until } from './fake-pool.ts'

/** A Node that can be taken away, and put back. */
function fleetingNode() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-node-'))
  onTestFinished(() => fs.rmSync(folder, { recursive: true }))
  const file = path.join(folder, 'node')
  const putBack = (): void => fs.symlinkSync(process.execPath, file)
  putBack()
  return { command: { ...fakeCommand(), file }, takeAway: () => fs.rmSync(file), putBack }
}

/** A pool with one process that lives, and no way to start others. */
async function stranded() {
  const { command, takeAway, putBack } = fleetingNode()
  const troubles: Error[] = []
  const pool = fakePool({ command, size: 4, warm: 1, onTrouble: (error) => void troubles.push(error) })
  const pid = await returned(pool, 'pid')
  takeAway()
  return { pool, pid, troubles, putBack }
}

describe('processes that cannot be started', () => {
  test('attempts go to the processes that live, the event loop turns, and the trouble is reported once', async () => {
    const { pool, pid, troubles } = await stranded()
    let turns = 0
    const turning = setInterval(() => turns++, 10)
    const pids = await Promise.all(Array.from({ length: 6 }, () => returned(pool, 'sleeps a little')))
    clearInterval(turning)
    expect(new Set(pids)).toEqual(new Set([pid]))
    expect(turns).toBeGreaterThan(5)
    expect(troubles).toMatchObject([{ code: 'no_worker', message: expect.stringContaining('ENOENT') }])
  })

  test('when no process is left, attempts that wait fail with the reason and may be tried again', async () => {
    const { pool } = await stranded()
    const [crashed, ...waiting] = await Promise.all(['exits natively', 'noop', 'noop'].map((key) => pool.run(envelope(key))))
    expect(crashed).toMatchObject({ outcome: 'FAILED', error: { category: 'crashed' } })
    for (const result of [...waiting, await pool.run(envelope('noop'))]) {
      expect(result).toMatchObject({
        outcome: 'FAILED',
        error: {
          category: 'infrastructure',
          message: expect.stringMatching(/^No worker process could be started: .*ENOENT\. .*start the server again/),
          retryable: true,
        },
      })
    }
  })

  test('processes are started as soon as that works again', async () => {
    const { pool, pid, putBack, troubles } = await stranded()
    const long = envelope('listens')
    void pool.run(long)
    const other = returned(pool, 'pid')
    await until(() => troubles.length > 0)
    putBack()
    expect(await other).not.toBe(pid)
    pool.cancel(long.attempt_id)
  })

  test('new code gets a few tries, and the old code stays', async () => {
    const { pool, putBack } = await stranded()
    expect(await pool.replace({ ...fakeCommand('two'), file: '/no/such/node' })).toMatchObject({
      type: 'load_failed',
      problems: [{ code: 'no_worker', hint: expect.stringContaining('Put it back') }],
    })
    expect(await returned(pool, 'version')).toBe('one')
    putBack()
    expect(await pool.replace(fakeCommand('three'))).toMatchObject({ type: 'loaded' })
    expect(await returned(pool, 'version')).toBe('three')
  })

  test('a pool that is closed between two tries tries no more', async () => {
    const troubles: Error[] = []
    const command = { ...fakeCommand(), file: '/no/such/node' }
    const pool = fakePool({ command, size: 2, warm: 2, onTrouble: (error) => void troubles.push(error) })
    const waiting = pool.run(envelope('noop'))
    await until(() => troubles.length > 0)
    await pool.close()
    expect((await waiting).outcome).toBe('CANCELLED')
    expect(await pool.ready()).toMatchObject({ type: 'load_failed' })
  })

  test('a start that fails is reported alike, whether Node throws the error or emits it', async () => {
    // No system takes an argument of this size.
    const pool = fakePool({ command: { file: process.execPath, args: ['x'.repeat(2 ** 24)] } })
    expect(await pool.ready()).toMatchObject({ problems: [{ message: expect.stringContaining('E2BIG') }] })
  })
})

/** What a module prints that may open only so many files. */
async function printedWith(files: number, module: string): Promise<string> {
  const line = `ulimit -n ${files}; exec "$0" --input-type=module -e "$1"`
  const cwd = path.resolve(import.meta.dirname, '../..')
  const { stdout } = await promisify(execFile)('sh', ['-c', line, process.execPath, module], { cwd })
  return stdout
}

const CROWDED = `
import { readdirSync } from 'node:fs'
import { WorkerPool } from './src/worker/pool/pool.ts'
import { envelope, fakeCommand } from './test/worker/fake-envelope.ts'
const pool = new WorkerPool({ command: fakeCommand(), size: 20, warm: 1, now: Date.now })
const open = []
const onStart = () => open.push(readdirSync('/proc/self/fd').length)
const results = await Promise.all(Array.from({ length: 20 }, () => pool.run(envelope('sleeps a little'), { onStart })))
await pool.close()
console.log(JSON.stringify({ outcomes: [...new Set(results.map(({ outcome }) => outcome))], most: Math.max(...open) }))
`

test.runIf(process.platform === 'linux')(
  'workers leave files for the server to open, and share what work there is',
  async () => {
    const { outcomes, most } = JSON.parse(await printedWith(100, CROWDED))
    expect(outcomes).toEqual(['SUCCEEDED'])
    expect(most).toBeLessThan(80)
  },
)

const PROGRAM = `
import { openSync } from 'node:fs'
import { runProgram } from './src/worker/process/program.ts'
try { for (;;) openSync('/dev/null') } catch {}
const { signal } = new AbortController()
const error = await runProgram({ words: ['true'], cwd: '/', env: {}, signal, print() {}, describing: { root: '/' } }).catch((error) => error)
process.stdout.write(String(error.code))
process.exit()
`

test.skipIf(process.platform === 'win32')(
  'a program that cannot be started for lack of files fails its attempt, not its worker',
  async () => {
    expect(await printedWith(64, PROGRAM)).toBe('EMFILE')
  },
)
