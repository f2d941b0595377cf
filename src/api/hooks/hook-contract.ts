import type { Deliveries } from '../../contract/delivery.ts'
import type { SensorSource } from '../../contract/sensor.ts'
import type { Scope } from '../../engine/paths.ts'
import type { PublicKeys } from '../keys/fetched-keys.ts'
import type { RefusalReason } from './refusals.ts'

/** A sensor that others send messages to. */
export interface HookedSensor<T extends 'webhook' | 'pubsub'> {
  readonly sensor_id: string
  readonly sensor_name: string
  readonly config: Extract<SensorSource, { type: T }>
}

/** Everything that the routes for senders need to know. */
export interface HooksApi {
  readonly scope: Scope
  /** The keys by which pushes of Pub/Sub are verified. */
  readonly keys: PublicKeys
  /** Several sensors may have the same path; each gets what is sent there. Removed ones are not among them. */
  sensorsAt(path: string): readonly HookedSensor<'webhook'>[]
  /** By its name or its id. */
  sensorNamed(nameOrId: string): HookedSensor<'pubsub'> | undefined
  /** Undefined in a process that evaluates no sensors. */
  deliveries(): Deliveries | undefined
  /** The value of a secret; undefined if it is not set. */
  secret(name: string): string | undefined
  /** Where senders reach this server; undefined if that is not known. */
  baseUrl(): string | undefined
  now(): number
  mintId(): string
  /** Counts a request that was refused. Nothing else is kept of it. */
  refused(sensorId: string, reason: RefusalReason): void
  /** Tells the owner of the server what is to be repaired. */
  trouble(error: unknown): void
}
