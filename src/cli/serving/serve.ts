import { constants } from 'node:os'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import type { Binding } from '../../server/machine/listen.ts'
import { LocalServer } from '../../server/machine/local-server.ts'
import { fail, warn } from '../output.ts'
import { componentsOf, currentUser } from '../project.ts'
import type { DevVoice, PolledSensor, Upcoming } from '../show-dev.ts'
import { takeLease } from '../take-lease.ts'

/** A server of a project, until a signal ends it. */
export interface Serving extends Binding {
  readonly projectDir: string
  readonly voice: DevVoice
  /** Loads the project again when its code is saved, and waits for a repair when it does not load. */
  readonly watch: boolean
  readonly automation: boolean
  /** The first of these that is free; 0 for any. */
  readonly port: number | readonly number[]
  readonly concurrency?: number
  /** Runs these first. */
  readonly run?: readonly string[] | undefined
  /** How long attempts may go on after a signal. */
  readonly drainMs?: number
  /** How long attempts that are cancelled then may take to end. */
  readonly cancelMs?: number
}

export const DEFAULT_PORT = 4400
/** Time from a signal to the end of a server that was still starting. */
const START_GRACE_MS = 3_000

/** Runs the server of a project on this machine until a signal. A second signal ends the process at once. */
export async function serveProject(serving: Serving): Promise<void> {
  const { voice, watch, drainMs = 0 } = serving
  const began = performance.now()
  const stopped = Promise.withResolvers<unknown>()
  // Signals are handled from the beginning, so that an interrupted start leaves nothing behind either.
  const signalled = nextSignal()
  const starting = startServer(serving, stopped.resolve)
  const started = await Promise.race([starting, signalled])
  if (typeof started === 'string') {
    // The server finishes its work; after the grace the process exits even if something is left.
    setTimeout(() => process.exit(), START_GRACE_MS).unref()
    await (await starting).server.close()
    voice.stopped(0)
    process.exit()
  }
  const { server, loaded } = started
  if (!loaded.ok && !watch) {
    // Nothing would load it again, so that whoever started the server must know.
    voice.loaded(loaded)
    await server.close()
    process.exitCode = 1
    return
  }
  const upcoming = serving.automation
    ? { ...(await schedulesOf(server)), polls: polled(server), isOn: true }
    : { ticks: [], polls: [], paused: [], isOn: false }
  voice.ready(server.url, loaded, performance.now() - began, upcoming)
  server.feed.listen(voice.changed, { sinceOpened: true })
  const { run } = serving
  if (loaded.ok && run !== undefined) await server.api.runs.request({ select: [...run] }, currentUser()).catch(fail)

  let end = await Promise.race([signalled, stopped.promise])
  if (typeof end === 'string' && drainMs > 0) {
    voice.draining?.(server.orchestrator.running, drainMs)
    end = (await Promise.race([server.drain(drainMs), stopped.promise])) ?? end
  }
  const { running } = server.orchestrator
  await server.close(serving.cancelMs)
  if (typeof end === 'string') voice.stopped(running)
  else {
    fail(end)
    // Its start was in order, so a supervisor may start it again.
    if (isServoError(end, 'conflict')) process.exitCode = 3
  }
}

async function startServer(serving: Serving, onStopped: (error: unknown) => void) {
  const { projectDir, voice, port, run: _, drainMs: __, cancelMs: ___, ...options } = serving
  const components = await componentsOf(projectDir)
  const instance = components.ulid()
  const lease = await takeLease(components, instance)
  return await LocalServer.start({
    ...options,
    projectDir,
    components,
    lease,
    instance,
    port,
    onLoaded: voice.loaded,
    onPrinted: voice.printed,
    onTrouble: warn,
    onStopped,
  }).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'EADDRINUSE' && typeof port === 'number' ? portTaken(port) : error
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
  new ServoError('conflict', 'port_taken', `port ${port} is in use`, {
    hint: 'Choose another with --port; --port 0 takes any that is free.',
  })

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        // As a shell reports a process that a signal ended.
        if (asked) process.exit(128 + constants.signals[signal])
        asked = true
        resolve(signal)
      })
    }
  })
}
