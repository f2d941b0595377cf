import fs from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { descendants, isAlive } from './support/processes.ts'
import { projectOf, type TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

/** Programs that nothing ends by itself: one in the group of its worker, one in a session of its own, and one that a program left behind. */
const LASTING = `import { spawn } from 'node:child_process'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset } from 'servo-flow'

export const lasting = asset('lasting', {
  async run() {
    if (existsSync('go')) return
    const programs = [
      spawn('sleep', ['600'], { stdio: 'ignore' }),
      spawn('sleep', ['600'], { stdio: 'ignore', detached: true }),
      spawn('sh', ['-c', 'setsid sh -c "trap : HUP INT TERM; echo \\\\$\\\\$ > left.tmp; mv left.tmp left-behind; while :; do sleep 1; done" &'], { stdio: 'ignore' }),
    ]
    while (!existsSync('left-behind')) await sleep(10)
    writeFileSync('programs.tmp', [process.pid, programs[0].pid, programs[1].pid].join(' '))
    renameSync('programs.tmp', 'programs')
    await sleep(600_000)
  },
})

export const beside = asset('beside', {
  async run() {
    writeFileSync('beside.tmp', String(process.pid))
    renameSync('beside.tmp', 'beside')
    await sleep(600_000)
  },
})
`

interface UnderWay {
  readonly dev: Servo
  readonly worker: number
  readonly workers: readonly number[]
  readonly programs: readonly number[]
}

async function underWay(project: TestProject): Promise<UnderWay> {
  const dev = await project.dev()
  await project.json('run', 'lasting', '--detach')
  await until(() => fs.existsSync(project.file('programs')))
  const [worker = 0, ...own] = fs.readFileSync(project.file('programs'), 'utf8').split(' ').map(Number)
  const programs = [...own, Number(fs.readFileSync(project.file('left-behind'), 'utf8'))]
  const workers = descendants(dev.pid).filter((pid) => !programs.includes(pid))
  onTestFinished(() => {
    for (const pid of [...programs, ...workers].filter(isAlive)) process.kill(pid, 'SIGKILL')
  })
  expect(programs.filter(isAlive)).toEqual(programs)
  expect(workers).toContain(worker)
  return { dev, worker, workers, programs }
}

test.runIf(process.platform === 'linux')(
  '[W6] what tasks started is ended by the next start, when server and workers were killed together',
  async () => {
    const project = projectOf({ 'assets/lasting.ts': LASTING })
    const copy = projectOf({ 'assets/lasting.ts': LASTING })
    const { dev, workers, programs } = await underWay(project)
    // Stopped first, so that none can see another end.
    for (const pid of [dev.pid, ...workers]) process.kill(pid, 'SIGSTOP')
    for (const pid of [dev.pid, ...workers]) process.kill(pid, 'SIGKILL')
    await dev.ended
    expect(programs.filter(isAlive)).toEqual(programs)

    // A copy of the project is another project.
    fs.cpSync(project.file('.servo'), copy.file('.servo'), { recursive: true })
    copy.write('go')
    const other = await copy.dev()
    expect(programs.filter(isAlive)).toEqual(programs)
    other.kill('SIGKILL')
    await other.ended

    project.write('go')
    const next = await project.dev()
    expect(programs.filter(isAlive)).toEqual([])
    await next.says(/succeeded .* 1 task\n/)
  },
)

test.runIf(process.platform === 'linux')(
  '[W1] a server that is killed takes along what left the group of its worker, and a worker beside it that is stopped',
  async () => {
    const project = projectOf({ 'assets/lasting.ts': LASTING })
    const { dev, workers, programs } = await underWay(project)
    await project.json('run', 'beside', '--detach')
    await until(() => fs.existsSync(project.file('beside')))
    const stopped = Number(fs.readFileSync(project.file('beside'), 'utf8'))
    process.kill(stopped, 'SIGSTOP')
    onTestFinished(() => void (isAlive(stopped) && process.kill(stopped, 'SIGKILL')))
    dev.kill('SIGKILL')
    await dev.ended
    await until(() => ![stopped, ...workers, ...programs].some(isAlive), 'everything that the tasks started to end')
  },
)

test.runIf(process.platform === 'linux')('[W6] a worker that was stopped is ended by the next start', async () => {
  const project = projectOf({ 'assets/lasting.ts': LASTING })
  const { dev, workers, programs } = await underWay(project)
  for (const pid of workers) process.kill(pid, 'SIGSTOP')
  dev.kill('SIGKILL')
  await dev.ended
  expect(workers.filter(isAlive)).toEqual(workers)
  project.write('go')
  await project.dev()
  expect([...workers, ...programs].filter(isAlive)).toEqual([])
})

test.runIf(process.platform === 'linux')('[C3] a cancelled run leaves nothing that its tasks started', async () => {
  const project = projectOf({ 'assets/lasting.ts': LASTING })
  const { programs } = await underWay(project)
  const [run] = await project.json('runs', 'list')
  await project.servo('runs', 'cancel', run.run_id)
  await until(() => !programs.some(isAlive), 'the programs of the run to end')
})
