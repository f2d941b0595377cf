import fs from 'node:fs'
import { onTestFinished } from 'vitest'
import type { LogEntry } from '../../src/contract/pipe.ts'
import { WorkerPool, type WorkerPoolOptions } from '../../src/worker/pool/pool.ts'
import { envelope, fakeCommand } from './fake-envelope.ts'

/** A pool that is closed after the test. */
export function fakePool(options: Partial<WorkerPoolOptions> = {}): WorkerPool {
  const pool = new WorkerPool({ command: fakeCommand(), size: 1, warm: 1, now: Date.now, ...options })
  onTestFinished(() => pool.close({ graceMs: 0 }))
  return pool
}

/** Runs a body to its end and keeps its log. */
export async function runLogged(pool: WorkerPool, assetKey: string, options: { timeoutMs?: number } = {}) {
  const entries: LogEntry[] = []
  const result = await pool.run(envelope(assetKey), { ...options, onLog: (more) => void entries.push(...more) })
  return { result, entries, texts: entries.map(({ text }) => text) }
}

/** What a body of fake-worker.ts returned. */
export async function returned(pool: WorkerPool, assetKey: string): Promise<unknown> {
  const { output } = await pool.run(envelope(assetKey))
  return output?.metadata['value']
}

/** True if a process runs: a zombie does not. */
export function isAlive(pid: unknown): boolean {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z'
  } catch {
    return false
  }
}

/** Resolves when the condition holds. A test that waits in vain ends by its timeout. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5))
}
