import { messageOf, ServoError } from '../../lib/error.ts'
import { SECOND_MS } from '../../lib/time.ts'
import { concurrencyFlag, portFlag, wholeNumber } from '../flags.ts'
import { complain, logInstead, workUnread } from '../output.ts'
import { findProject, type ProjectFlags } from '../project.ts'
import { logVoice } from './log-voice.ts'
import { DEFAULT_PORT, serveProject } from './serve.ts'
import { type LogFormat, logFormats, ServerLog } from './server-log.ts'

export interface StartFlags extends ProjectFlags {
  port?: string
  concurrency?: string
  /** False with --no-automation. */
  automation?: boolean
  logFormat?: LogFormat
  /** In seconds. */
  drain?: string
  host?: string
  trustedProxy?: string[]
}

/** Together with what follows less than the 30 s after which Kubernetes kills a process. */
const DEFAULT_DRAIN_SEC = 25
const MAX_DRAIN_SEC = 86_400
/** What is cancelled because the drain is over has so long to end by itself. */
const CANCEL_MS = 2 * SECOND_MS

/** Runs the server of a project for good: its code stays as it was loaded, and what happens goes to a log. */
export async function startCommand(flags: StartFlags): Promise<void> {
  workUnread()
  // First of all: whatever reads the log can read why a server did not start, too.
  const log = new ServerLog({ format: formatOf(flags), write: complain, environment: process.env })
  logInstead(log)
  logAccidents(log)
  const drain =
    flags.drain === undefined ? DEFAULT_DRAIN_SEC : wholeNumber('--drain', flags.drain, { min: 0, max: MAX_DRAIN_SEC })
  const [size, port] = [concurrencyFlag(flags.concurrency), portFlag(flags.port) ?? DEFAULT_PORT]
  const projectDir = findProject(flags)
  await serveProject({
    projectDir,
    voice: logVoice(log),
    watch: false,
    automation: flags.automation !== false,
    ...size,
    port,
    host: flags.host,
    trustedProxies: flags.trustedProxy,
    drainMs: drain * SECOND_MS,
    cancelMs: CANCEL_MS,
  })
}

/** What Node would print as text of its own: warnings, and the error that ends the process. */
function logAccidents(log: ServerLog): void {
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => log.warn(message, { code: name }))
  process.on('uncaughtException', (error: unknown) => {
    log.error(`the server crashed: ${messageOf(error)}`, {
      code: 'internal',
      stack: error instanceof Error ? error.stack : undefined,
    })
    // As Node does. What is durable is the truth, and the next start goes on from it.
    process.exit(1)
  })
}

/** As asked for; otherwise for a program, unless a person watches. */
function formatOf({ logFormat, json }: StartFlags): LogFormat {
  if (logFormat !== undefined) return logFormat
  if (json) return 'json'
  const { SERVO_LOG_FORMAT: asked } = process.env
  if (asked === undefined || asked === '') return process.stderr.isTTY ? 'text' : 'json'
  const known = logFormats.find((format) => format === asked)
  if (known !== undefined) return known
  throw new ServoError('invalid', 'bad_setting', `SERVO_LOG_FORMAT cannot be ${JSON.stringify(asked.slice(0, 40))}`, {
    hint: `Set SERVO_LOG_FORMAT to ${logFormats.join(' or ')}, or unset it.`,
  })
}
