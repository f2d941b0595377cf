import { existsSync } from 'node:fs'
import path from 'node:path'
import type { WorkerCommand } from '../../worker/pool/pool.ts'

/** Starts worker-process.ts for a project and a data folder. `endOrphans` finds its processes by the marker. */
export function workerCommand(projectDir: string, dataDir: string, marker?: string): WorkerCommand {
  const script = path.join(import.meta.dirname, `worker-process${path.extname(import.meta.filename)}`)
  return {
    file: process.execPath,
    args: [script, path.resolve(projectDir), path.resolve(dataDir)],
    cwd: path.resolve(projectDir),
    // TypeScript that was stripped and compiled once is not stripped and compiled again: a worker starts in half the time.
    // Node's own variable sets the folder of the cache, if it is present. A project without state gets none: Node would make the folder of
    // the state, open to others and without its .gitignore, for a command that may be refused.
    env: {
      ...(process.env['NODE_COMPILE_CACHE'] === undefined &&
        existsSync(dataDir) && { NODE_COMPILE_CACHE: path.join(path.resolve(dataDir), '.compile-cache') }),
    },
    ...(marker !== undefined && { marker }),
  }
}
