import { googleKeys } from '../../api/hooks/google-keys.ts'
import type { HookedSensor, HooksApi } from '../../api/hooks/hook-contract.ts'
import { type RefusalReason, secretMissing } from '../../api/hooks/refusals.ts'
import type { Deliveries } from '../../contract/delivery.ts'
import { type SensorRow, sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import type { Scope } from '../../engine/paths.ts'
import { messageOf } from '../../lib/error.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { Knowledge } from './knowledge.ts'
import { missingSecrets } from './senders.ts'

/** The variable that says where senders reach the server: behind a proxy or a tunnel it cannot know that itself. */
const PUBLIC_URL = 'SERVO_PUBLIC_URL'
/** A sender that tries again every second must not fill the log. */
const TELL_EVERY_MS = MINUTE_MS

export interface HooksOptions {
  /** The environment of the server, in which the secrets of sensors are. It is read anew for every request. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly deliveries: () => Deliveries | undefined
  /** The address at which the server listens, once it does. */
  readonly url: () => string | undefined
  readonly onTrouble?: ((error: unknown) => void) | undefined
  /** Google's keys, if they are elsewhere. */
  readonly keys?: HooksApi['keys']
}

export type Refusals = Readonly<Partial<Record<RefusalReason, number>>>

/** What the routes for senders know of the workspace, and how often they refused. */
export class Hooks implements HooksApi {
  readonly scope: Scope
  readonly keys: HooksApi['keys']
  readonly #known: Pick<Knowledge, 'scope' | 'rows' | 'now' | 'mintId'>
  readonly #options: HooksOptions
  readonly #refusals = new Map<string, Map<RefusalReason, number>>()
  /** When each trouble was last told. */
  readonly #told = new Map<string, number>()

  constructor(known: Pick<Knowledge, 'scope' | 'rows' | 'now' | 'mintId'>, options: HooksOptions) {
    this.scope = known.scope
    this.#known = known
    this.#options = options
    this.keys = options.keys ?? googleKeys({ clock: known, onTrouble: (error) => this.trouble(error) })
  }

  sensorsAt(path: string): HookedSensor<'webhook'>[] {
    return this.#sensors()
      .flatMap(({ sensor_id, sensor_name, config }) =>
        config.type === 'webhook' && config.path === path ? [{ sensor_id, sensor_name, config }] : [],
      )
      .toSorted((a, b) => (a.sensor_id < b.sensor_id ? -1 : 1))
  }

  sensorNamed(nameOrId: string): HookedSensor<'pubsub'> | undefined {
    const sensors = this.#sensors()
    const found =
      sensors.find(({ sensor_name }) => sensor_name === nameOrId) ?? sensors.find(({ sensor_id }) => sensor_id === nameOrId)
    if (found?.config.type !== 'pubsub') return undefined
    const { sensor_id, sensor_name, config } = found
    return { sensor_id, sensor_name, config }
  }

  deliveries(): Deliveries | undefined {
    return this.#options.deliveries()
  }

  /** An empty variable is as good as none: anybody can guess it. */
  secret(name: string): string | undefined {
    return this.#options.environment[name] || undefined
  }

  baseUrl(): string | undefined {
    return this.#options.environment[PUBLIC_URL] || this.#options.url()
  }

  now(): number {
    return this.#known.now()
  }

  mintId(): string {
    return this.#known.mintId()
  }

  refused(sensorId: string, reason: RefusalReason): void {
    const counts = this.#refusals.get(sensorId) ?? new Map<RefusalReason, number>()
    this.#refusals.set(sensorId, counts.set(reason, (counts.get(reason) ?? 0) + 1))
  }

  /** How often requests to a sensor were refused since the server started, by reason. */
  refusals(sensorId: string): Refusals {
    return Object.fromEntries(this.#refusals.get(sensorId) ?? [])
  }

  /** Tells of each webhook whose secret is not set: otherwise its owner learns of that when the first sender is refused. */
  tellMissingSecrets(): void {
    for (const sensor of this.#sensors()) {
      const names = sensor.enabled ? missingSecrets(sensor, this) : []
      if (names.length > 0) this.trouble(secretMissing(sensor.sensor_name, names))
    }
  }

  trouble(error: unknown): void {
    const [text, now] = [messageOf(error), this.now()]
    const last = this.#told.get(text)
    if (last !== undefined && Math.abs(now - last) < TELL_EVERY_MS) return
    // Texts are about sensors and their secrets, which are few; should they not be, only the newest are remembered.
    if (this.#told.size >= MOST_TOLD) this.#told.clear()
    this.#told.set(text, now)
    this.#options.onTrouble?.(error)
  }

  #sensors(): readonly SensorRow[] {
    return [...this.#known.rows().hot(sensorDefinitions).all()].filter(({ removed_at }) => removed_at === null)
  }
}

const MOST_TOLD = 1_000
