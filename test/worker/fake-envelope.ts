import path from 'node:path'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import type { WorkerCommand } from '../../src/worker/pool/pool.ts'

/** Runs fake-worker.ts as this version of the code. */
export function fakeCommand(version = 'one', nodeOptions: readonly string[] = []): WorkerCommand {
  return { file: process.execPath, args: [...nodeOptions, path.join(import.meta.dirname, 'fake-worker.ts'), version] }
}

let attempts = 0

export function envelope(assetKey: string, partition?: string): DispatchEnvelope {
  const attempt_id = `att_${++attempts}`
  return {
    task_id: `d_${attempt_id}`,
    task_key: assetKey,
    run_id: 'run_1',
    attempt: 1,
    attempt_id,
    asset_key: assetKey,
    ...(partition === undefined ? {} : { partition: { key: partition } }),
    payload: { inputs: {}, labels: {} },
  }
}
