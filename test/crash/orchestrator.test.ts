import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { localComponents } from '../../src/server/components.ts'
import { readWorkspace } from '../../src/server/workspace/reader.ts'
import { type CrashProject, crashProject, expectedCounts } from './support/run-project.ts'

/** The acceptance asks for 100 during a run of 500 tasks; a developer who waits for `npm test` is content with fewer. */
const KILLS = Number(process.env['SERVO_RUN_KILLS'] ?? 5)
const project: CrashProject = KILLS >= 50 ? { tasks: 500, width: 10, taskMs: 400 } : { tasks: 60, width: 6, taskMs: 150 }

const main = inject('servoMain')

/** Starts the project, or goes on with it: the key makes it the same run. */
function start(dir: string): ChildProcess {
  return spawn(process.execPath, [main, 'run', '*', '--quiet', '--key', 'crash', '--project', dir], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

const isOver = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null
const gone = (child: ChildProcess): Promise<void> =>
  isOver(child) ? Promise.resolve() : new Promise((resolve) => child.once('exit', () => resolve()))

function childrenOf(pid: number): number[] {
  try {
    return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was faster.
  }
}

const isAlive = (pid: number): boolean =>
  fs.existsSync(`/proc/${pid}/stat`) && !/\) Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))

describe('a run whose processes are killed at any moment', { timeout: 120_000 + KILLS * 10_000 }, () => {
  test('[D6][I7][I8][I9][I10][V1] ends, with one outcome per task and attempts without a gap; nothing of a lost attempt is published', async () => {
    const dir = await crashProject(project)
    onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }))
    const seen = { orchestrator: 0, worker: 0, both: 0, endedBefore: 0 }
    const workers = new Set<number>()
    const errors: string[] = []
    const begin = (): ChildProcess => {
      const begun = start(dir)
      begun.stderr?.on('data', (text) => errors.push(String(text)))
      return begun
    }
    let child = begin()
    for (let kill = 0; kill < KILLS; kill++) {
      const pid = child.pid as number
      // Long enough to be up more often than not, short enough to die while starting too.
      await Promise.race([sleep(200 + Math.random() * 1_800), gone(child)])
      if (isOver(child)) {
        seen.endedBefore += 1
        break
      }
      const own = childrenOf(pid)
      for (const worker of own) workers.add(worker)
      const victim = (['orchestrator', 'worker', 'both'] as const)[Math.floor(Math.random() * 3)] as
        | 'orchestrator'
        | 'worker'
        | 'both'
      seen[victim] += 1
      if (victim !== 'orchestrator') for (const worker of own.filter(() => Math.random() < 0.6)) killed(worker)
      if (victim === 'worker') continue
      killed(pid)
      await gone(child)
      child = begin()
    }
    await gone(child)
    console.info(JSON.stringify({ kills: KILLS, ...seen }))

    const servoDir = path.join(dir, '.servo')
    const components = localComponents(servoDir)
    const { scope, store } = components
    const { runs, statuses } = await readWorkspace(components)
    const stored = new Map<string, string>()
    let cursor: string | undefined
    do {
      const page = await statuses.list({ select: '*', order: 'newest', values: true, limit: 1_000, cursor })
      for (const { asset_key, stored: kept } of page.partitions) stored.set(asset_key, kept?.value ?? '')
      cursor = page.next_cursor ?? undefined
    } while (cursor !== undefined)
    const [listed] = await runs.list({ limit: 5 })
    const { run, tasks, attempts } = await runs.get(String(listed?.['run_id']))
    const failed = attempts.filter(({ task_key }) => tasks.find((task) => task.task_key === task_key)?.state === 'FAILED')
    expect(failed).toEqual([])
    expect(child.exitCode, errors.join('')).toBe(0)
    expect(run).toMatchObject({ state: 'SUCCEEDED', tasks_total: project.tasks, tasks_succeeded: project.tasks })
    const counts = expectedCounts(project)
    for (const task of tasks) {
      const own = attempts.filter((attempt) => attempt.task_key === task.task_key)
      const key = task.task_key
      expect(
        own.map((attempt) => attempt.attempt).sort((a, b) => a - b),
        key,
      ).toEqual(own.map((_, i) => i + 1))
      const succeeded = own.filter((attempt) => attempt.outcome === 'SUCCEEDED')
      expect(succeeded, key).toHaveLength(1)
      expect(succeeded[0]?.attempt, key).toBe(task.attempt)
      expect(succeeded[0]?.materialization_id, key).toBe(task.materialization_id)
      expect(JSON.parse(stored.get(key) ?? ''), key).toEqual({ attempt: task.attempt, count: counts[Number(key.slice(2))] })
    }
    const { problems } = await verify({ store, scope, registry: orchestration, scratch: memoryStore() })
    expect(problems).toEqual([])
    expect([...workers].filter(isAlive)).toEqual([])
  })
})
