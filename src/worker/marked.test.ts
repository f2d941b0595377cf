import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { endMarked } from './marked.ts'

const NAME = 'SERVO_TEST_MARKER'
const folder = `folder-${process.pid}`

/** A program that bears this marker by the time it is returned. */
async function marked(marker: string, more: Record<string, string> = {}): Promise<ChildProcess> {
  const child = spawn('sleep', ['600'], { env: { PATH: process.env['PATH'] ?? '', ...more, [NAME]: marker }, stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  // Until it has become another program it has the environment of this one.
  await expect.poll(() => readFileSync(`/proc/${child.pid}/environ`, 'latin1'), { timeout: 10_000 }).toContain(marker)
  return child
}

const ended = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))

test.runIf(process.platform === 'linux')(
  'of all processes those are ended that bear the marker, stopped ones too',
  async () => {
    const old = await marked(`${folder}:one:1:`)
    const stopped = await marked(`${folder}:one:2:`)
    const ours = await marked(`${folder}:two:1:`)
    const spared = await marked(`${folder}:one:3:`)
    const alike = await marked(`${folder}0:one:1:`)
    const inAnother = await marked('other:one:1:', { SOME: `${NAME}=${folder}:one:1:` })
    stopped.kill('SIGSTOP')
    const gone = Promise.all([ended(old), ended(stopped)])
    const found = endMarked(NAME, { prefix: `${folder}:`, unless: `${folder}:two:`, except: [spared.pid as number] })
    expect(found.sort()).toEqual([old.pid, stopped.pid].sort())
    expect(await gone).toEqual(['SIGKILL', 'SIGKILL'])
    for (const child of [ours, spared, alike, inAnother]) expect(child.exitCode ?? child.signalCode).toBeNull()
  },
)
