import { Worker } from 'node:worker_threads'

/**
 * A second pipe to the parent. Its end means that the parent is gone, however that came about, and then nothing of this
 * process and what it started may stay.
 */
const LIFELINE_FD = 4

/** As text, because a file would go through the module loader first: this way the thread is there in a few milliseconds. */
const source = `
const { Socket } = require('node:net')
const end = () => {
  try { process.kill(-process.pid, 'SIGKILL') } catch { process.kill(process.pid, 'SIGKILL') }
}
new Socket({ fd: ${LIFELINE_FD} }).on('error', end).on('close', end).resume()
`

/** Watches the parent from a thread of its own, so that user code which never yields cannot outlive it either. */
export function startWatchdog(): void {
  new Worker(source, {
    eval: true,
    name: 'servo-watchdog',
    // Options such as --import are meant for user code; the thread has none, and needs next to no memory.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
  }).unref()
}
