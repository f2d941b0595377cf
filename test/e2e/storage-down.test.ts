import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

const ONE = `import { asset } from 'servo-flow'
export const quick = asset('quick', { run: () => 1 })
export const long = asset('long', { run: () => new Promise((resolve) => setTimeout(resolve, 600_000)) })
`

/** Tools of the system, not of ours, whatever looks for those in package.json. */
const MOUNT = 'mount'
const UMOUNT = 'umount'

/** Room for what a worker keeps of compiled code, and for some runs. */
const DISK = 'size=64m,mode=755'

const mayMount = ((): boolean => {
  const dir = fs.mkdtempSync('/tmp/servo-mount-')
  const mounted = spawnSync(MOUNT, ['-t', 'tmpfs', '-o', DISK, 'tmpfs', dir]).status === 0
  if (mounted) spawnSync(UMOUNT, ['--lazy', dir])
  fs.rmdirSync(dir)
  return mounted
})()
const mayBeLeftOut = !mayMount && process.env['SERVO_REQUIRE_ALL'] !== '1'
if (mayBeLeftOut) console.warn('A server whose disk is full or read-only is not tested: only root can mount one.')

/** A project whose state lies on a disk of its own. */
function projectOnDisk(): TestProject {
  const project = new TestProject({ 'assets/one.ts': ONE })
  fs.mkdirSync(project.file('.servo'))
  execFileSync(MOUNT, ['-t', 'tmpfs', '-o', DISK, 'tmpfs', project.file('.servo')])
  onTestFinished(async () => {
    spawnSync(UMOUNT, ['--lazy', project.file('.servo')])
    await project.end()
  })
  return project
}

const remount = (project: TestProject, option: string): void =>
  void execFileSync(MOUNT, ['-o', `remount,${option}`, project.file('.servo')])

/** Takes all room there is. */
function fill(project: TestProject): void {
  const file = fs.openSync(project.file('.servo/filler'), 'w')
  for (const bytes of [1 << 20, 1 << 12, 1]) {
    try {
      for (;;) fs.writeSync(file, Buffer.alloc(bytes))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
  fs.closeSync(file)
}

const BOUND_MS = 15_000
async function inTime<T>(answer: Promise<T>): Promise<T | 'no answer in time'> {
  return await Promise.race([answer, sleep(BOUND_MS, 'no answer in time' as const, { ref: false })])
}

/** Everybody is answered while nothing can be written. */
async function isRefused(project: TestProject, dev: Servo): Promise<void> {
  const request = project.clientOf(dev).runs.request({ select: ['quick'] }, 'somebody')
  const refusal = request.then(
    () => 'accepted',
    (error: { kind: string; message: string }) => error,
  )
  const others = [project.begin(['run', 'quick']), project.begin(['run', 'quick', '--detach'])]
  expect(await inTime(refusal)).toMatchObject({ name: 'ServoError', kind: 'unavailable' })
  for (const other of others) {
    const ran = await inTime(other.ended)
    expect(ran).toMatchObject({ code: 3, stdout: '' })
    expect((ran as { stderr: string }).stderr).toMatch(/^error: /m)
  }
  // What is known can be asked all the while.
  expect(await inTime(project.clientOf(dev).runs.list({ limit: 10 }))).toMatchObject([{ state: 'SUCCEEDED' }])
  expect(dev.isOver).toBe(false)
}

async function goesOn(project: TestProject, dev: Servo): Promise<void> {
  await until(async () => {
    const { code } = await project.servo('run', 'quick')
    return code === 0
  }, 'the server to take runs again')
  expect(dev.isOver).toBe(false)
  dev.kill('SIGINT')
  expect((await dev.ended).code).toBe(0)
  expect(await project.servo('verify', '.servo')).toMatchObject({ code: 0 })
}

describe.skipIf(mayBeLeftOut)('a server whose storage is down', () => {
  test('answers 503 while its disk is full, and goes on when there is room', async () => {
    const project = projectOnDisk()
    const dev = await project.dev()
    expect(await project.servo('run', 'quick')).toMatchObject({ code: 0 })
    fill(project)
    await isRefused(project, dev)
    project.remove('.servo/filler')
    await goesOn(project, dev)
  })

  test('answers 503 while its disk is read-only, and goes on when it can be written', async () => {
    const project = projectOnDisk()
    const dev = await project.dev()
    expect(await project.servo('run', 'quick')).toMatchObject({ code: 0 })
    // A disk on which a file is open for writing cannot be made read-only.
    await until(() => spawnSync(MOUNT, ['-o', 'remount,ro', project.file('.servo')]).status === 0, 'the disk to be quiet')
    await isRefused(project, dev)
    remount(project, 'rw')
    await goesOn(project, dev)
  })

  test('a project on a disk that can only be read ends with 3, and says where', async () => {
    const project = new TestProject({ 'assets/one.ts': ONE })
    execFileSync(MOUNT, ['--bind', project.dir, project.dir])
    onTestFinished(async () => {
      spawnSync(UMOUNT, ['--lazy', project.dir])
      await project.end()
    })
    execFileSync(MOUNT, ['-o', 'remount,bind,ro', project.dir])
    for (const args of [['dev'], ['run', 'quick']]) {
      const { code, stderr } = await project.servo(...args)
      expect(stderr).toBe(
        `error: cannot create .servo in ${project.dir}: the folder cannot be written\nhint: Check who owns the folder, its permissions, and whether it is mounted read-only.\n`,
      )
      expect(code).toBe(3)
    }
  })
})

test.skipIf(mayBeLeftOut)('servo run ends when it is told to, also when its cancellation cannot be recorded', async () => {
  const project = projectOnDisk()
  const run = project.begin(['run', 'long'])
  await run.says(/running +long/)
  fill(project)
  run.kill('SIGTERM')
  expect(await run.ended).toMatchObject({
    code: 143,
    stderr: expect.stringContaining('was not cancelled, because nothing can be recorded'),
  })
})
