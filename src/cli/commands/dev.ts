import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { LocalServer } from '../../server/machine/local-server.ts'
import { concurrencyFlag, wholeNumber } from '../flags.ts'
import { fail, warn, workUnread } from '../output.ts'
import { componentsOf, currentUser, findProject, type ProjectFlags } from '../project.ts'
import { type DevVoice, jsonLines, type PolledSensor, screen, type Upcoming } from '../show-dev.ts'
import { takeLease } from '../take-lease.ts'

export interface DevFlags extends ProjectFlags {
  port?: string
  concurrency?: string
  run?: string[]
  /** False with --no-automation. */
  automation?: boolean
}

const DEFAULT_PORT = 4400
/** Time from a signal to the end of a server that was still starting. */
const START_GRACE_MS = 3_000

/** Runs the server of the project on this machine until Ctrl-C. */
export async function devCommand(flags: DevFlags): Promise<void> {
  workUnread()
  const projectDir = findProject(flags)
  const voice = flags.json ? jsonLines : screen
  const began = performance.now()
  const stopped = Promise.withResolvers<unknown>()
  // Signals are handled from the beginning, so that an interrupted start leaves nothing behind either.
  const signalled = nextSignal()
  const starting = startServer(projectDir, flags, voice, stopped.resolve)
  const started = await Promise.race([starting, signalled])
  if (typeof started === 'string') {
    // The server finishes its work; after the grace the process exits even if something is left.
    setTimeout(() => process.exit(), START_GRACE_MS).unref()
    await (await starting).server.close()
    voice.stopped(0)
    process.exit()
  }
  const { server, loaded } = started
  const upcoming =
    flags.automation === false
      ? { ticks: [], polls: [], paused: [], isOn: false }
      : { ...(await schedulesOf(server)), polls: polled(server), isOn: true }
  voice.ready(server.url, loaded, performance.now() - began, upcoming)
  server.feed.listen(voice.changed, { sinceOpened: true })
  if (loaded.ok && flags.run !== undefined) await server.api.runs.request({ selection: flags.run }, currentUser()).catch(fail)

  const signal = await Promise.race([signalled, stopped.promise])
  const { running } = server.orchestrator
  await server.close()
  if (typeof signal === 'string') voice.stopped(running)
  else {
    fail(signal)
    // Its start was in order, so a supervisor may start it again.
    if (isServoError(signal, 'conflict')) process.exitCode = 3
  }
}

async function startServer(projectDir: string, flags: DevFlags, voice: DevVoice, onStopped: (error: unknown) => void) {
  const size = concurrencyFlag(flags.concurrency)
  const port = flags.port === undefined ? undefined : wholeNumber('--port', flags.port, { min: 0, max: 65_535 })
  const components = await componentsOf(projectDir)
  const instance = components.ulid()
  const options = {
    projectDir,
    components,
    lease: await takeLease(components, instance),
    instance,
    watch: true,
    automation: flags.automation !== false,
    ...size,
    onLoaded: voice.loaded,
    onPrinted: voice.printed,
    onTrouble: warn,
    onStopped,
  }
  // The usual port if it is free, otherwise any other, so that two projects can run side by side.
  if (port === undefined) return await LocalServer.start({ ...options, port: [DEFAULT_PORT, 0] })
  return await LocalServer.start({ ...options, port }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' ? portTaken(port) : error
  })
}

/** When schedules tick next, the soonest first, and which are paused. */
async function schedulesOf(server: LocalServer): Promise<Pick<Upcoming, 'ticks' | 'paused'>> {
  const { schedules } = await server.api.schedules.list({ limit: 1_000 })
  const next = schedules.flatMap(({ definition, next_ticks: [at] }) =>
    at === undefined ? [] : [{ schedule: definition.schedule_name, at }],
  )
  const paused = schedules.flatMap(({ definition, status }) => (status === 'paused' ? [definition.schedule_name] : []))
  return { ticks: next.sort((a, b) => (a.at < b.at ? -1 : 1)), paused }
}

/** Which sensors are polled, and how often, the most often first. */
function polled(server: LocalServer): PolledSensor[] {
  const sensors = [...server.orchestrator.readable.state.hot(sensorDefinitions).all()]
  const polls = sensors.flatMap(({ sensor_name: sensor, config, enabled, removed_at }) =>
    config.type === 'poll' && enabled && removed_at === null ? [{ sensor, every_ms: config.every_ms }] : [],
  )
  return polls.sort((a, b) => a.every_ms - b.every_ms || (a.sensor < b.sensor ? -1 : 1))
}

const portTaken = (port: number): ServoError =>
  new ServoError('conflict', 'port_taken', `port ${port} is in use`, { hint: 'Leave --port out to use any free port.' })

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130)
        asked = true
        resolve(signal)
      })
    }
  })
}
