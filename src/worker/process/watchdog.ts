import { Worker } from 'node:worker_threads'
import { signalGroup } from '../group.ts'
import { endMarked, MARKER } from '../marked.ts'

/**
 * A second pipe to the parent. When it ends the parent is gone, whatever the reason, and this process and everything it started
 * must end too.
 */
const LIFELINE_FD = 4

/** Source text, because a file would go through the module loader: this way the thread starts in a few milliseconds. */
const source = (marker: string | undefined): string => `
const { Socket } = require('node:net')
const endMarked = ${endMarked}
const endStarted = ${endStarted}
const end = () => {
  try { endStarted(endMarked, '${MARKER}', ${JSON.stringify(marker)}) } catch {}
  try { process.kill(-process.pid, 'SIGKILL') } catch { process.kill(process.pid, 'SIGKILL') }
}
new Socket({ fd: ${LIFELINE_FD} }).on('error', end).on('close', end).resume()
`

/** Watches the parent from a thread of its own, so that user code which never yields cannot outlive it either. */
export function startWatchdog(marker: string | undefined): void {
  new Worker(source(marker), {
    eval: true,
    name: 'servo-watchdog',
    // Options such as --import are meant for user code. The thread runs none, and needs next to no memory.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
  }).unref()
}

/** The parent is gone: ends this process and everything it started. */
export function endWithParent(marker: string | undefined): void {
  endStarted(endMarked, MARKER, marker)
  if (!signalGroup(process.pid, 'SIGKILL')) process.exit()
}

/**
 * First ends the processes that this worker started, then all others of the same start of the server, because a worker
 * that is stopped cannot see that its server is gone. The order matters: other workers do the same and end this one, which must
 * have ended its own processes by then.
 */
function endStarted(end: typeof endMarked, name: string, marker: string | undefined): void {
  if (marker === undefined) return
  const [folder, instance] = marker.split(':')
  end(name, { prefix: marker, except: [process.pid] })
  end(name, { prefix: `${folder}:${instance}:`, except: [process.pid] })
}
