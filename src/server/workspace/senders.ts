import type { SenderFacts } from '../../api/automation/sensor-contract.ts'
import type { SensorRow } from '../../domain/sensors/sensor-definitions.table.ts'
import type { Scope } from '../../engine/paths.ts'

/** What a server knows of the senders of its sensors. */
export interface Senders {
  /** Undefined for a variable that is not set. */
  secret(name: string): string | undefined
  baseUrl(): string | undefined
  refusals(sensorId: string): Readonly<Record<string, number>>
}

type Hooked = Pick<SensorRow, 'sensor_id' | 'sensor_name' | 'config'>

/** Where senders reach a sensor on a server, by the name that they know; null if it has no senders. */
export function addressOf({ tenant_id, workspace_id }: Scope, { config, sensor_name }: Readonly<Hooked>): string | null {
  const [kind, last] =
    config.type === 'webhook' ? ['hooks', config.path] : config.type === 'pubsub' ? ['pubsub', sensor_name] : []
  if (kind === undefined || last === undefined) return null
  return `/${[kind, tenant_id, workspace_id, last].map(encodeURIComponent).join('/')}`
}

/** The variables that a webhook needs, if not one of them is set. During a rotation one is enough. */
export function missingSecrets({ config }: Readonly<Hooked>, senders: Pick<Senders, 'secret'>): readonly string[] {
  if (config.type !== 'webhook' || config.verify === 'none') return []
  return config.secrets.every((name) => senders.secret(name) === undefined) ? config.secrets : []
}

/** What the owner of a sensor has to know to let senders in. */
export function senderFacts(sensor: Readonly<Hooked>, scope: Scope, senders: Senders): SenderFacts | null {
  const address = addressOf(scope, sensor)
  if (address === null) return null
  const base = senders.baseUrl()?.replace(/\/+$/, '')
  const url = base === undefined ? null : `${base}${address}`
  const { config, sensor_id } = sensor
  return {
    url,
    audience: config.type === 'pubsub' ? (config.audience ?? url) : null,
    missing_secrets: missingSecrets(sensor, senders),
    refused: senders.refusals(sensor_id),
  }
}
