import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { Child } from './child.ts'
import type { Workload } from './workload.ts'

/** A folder that goes with the test. */
export async function crashFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'servo-crash-'))
  // A process that is being killed may still be writing.
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }))
  return dir
}

/** A process that goes with the test, however the test ends. */
export function started(workload: Workload): Child {
  const child = new Child(workload)
  onTestFinished(() => child.kill())
  return child
}
