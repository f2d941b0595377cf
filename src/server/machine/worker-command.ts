import path from 'node:path'
import type { WorkerCommand } from '../../worker/pool.ts'

/** Starts worker-process.ts for a project and a data folder. `nodeOptions` are for Node, such as `--max-old-space-size=4096`. */
export function workerCommand(projectDir: string, dataDir: string, nodeOptions: readonly string[] = []): WorkerCommand {
  const script = path.join(import.meta.dirname, `worker-process${path.extname(import.meta.filename)}`)
  return {
    file: process.execPath,
    args: [...nodeOptions, script, path.resolve(projectDir), path.resolve(dataDir)],
    cwd: path.resolve(projectDir),
    // TypeScript that was stripped and compiled once is not stripped and compiled again: a worker starts in half the time.
    env: { NODE_COMPILE_CACHE: path.join(path.resolve(dataDir), '.compile-cache') },
  }
}
