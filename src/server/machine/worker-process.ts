// A worker process: node worker-process.ts <project folder> <data folder>, started by WorkerPool with pipes at 3 and 4.

import { randomBytes } from 'node:crypto'
import { flushCompileCache } from 'node:module'
import path from 'node:path'
import { nodeDisk } from '../../adapters/fs/disk.ts'
import { fsStore } from '../../adapters/fs/object-store.ts'
import { writerThread } from '../../adapters/fs/writer.ts'
import { ulidSource } from '../../lib/ulid.ts'
import { loadProject } from '../../sdk/project/project.ts'
import { serveWork } from '../../worker/process/child.ts'
import { projectExecution } from '../../worker/process/execution.ts'

/** Later than the first attempt, which a person may be waiting for. */
const CACHE_FLUSH_MS = 500

const [, , projectDir = '.', dataDir = '.servo'] = process.argv

// It is meant for this process, not for programs that user code starts.
delete process.env['NODE_COMPILE_CACHE']

// The leader that started this process has its lease in there.
const store = fsStore(dataDir, nodeDisk, writerThread(), false)

await serveWork(async (secrets, onSlow) => {
  const project = await loadProject(projectDir, secrets.newest, onSlow)
  if ('problems' in project) return project
  // Node saves the cache when a process exits by itself, which a worker never does.
  setTimeout(flushCompileCache, CACHE_FLUSH_MS).unref()
  return projectExecution(project, {
    store,
    fileOf: (name) => path.join(store.dir, name),
    projectDir,
    redact: secrets.newest,
    hasSecret: secrets.isIn,
    now: Date.now,
    newId: ulidSource(Date.now, randomBytes),
  })
}, Date.now)
