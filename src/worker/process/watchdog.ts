import { Worker } from 'node:worker_threads'
import { signalGroup } from '../group.ts'
import { endMarked, MARKER } from '../marked.ts'

/**
 * A second pipe to the parent. Its end means that the parent is gone, however that came about, and then nothing of this
 * process and what it started may stay.
 */
const LIFELINE_FD = 4

/** As text, because a file would go through the module loader first: this way the thread is there in a few milliseconds. */
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
    // Options such as --import are meant for user code; the thread has none, and needs next to no memory.
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
 * First what this worker started, wherever it went. Then all else of the same start of the server, because a worker that is
 * stopped cannot see that its server is gone. In this order, since other workers do the same: each has ended its own by then.
 */
function endStarted(end: typeof endMarked, name: string, marker: string | undefined): void {
  if (marker === undefined) return
  const [folder, instance] = marker.split(':')
  end(name, { prefix: marker, except: [process.pid] })
  end(name, { prefix: `${folder}:${instance}:`, except: [process.pid] })
}
