import { NO_ACCESS } from '../api/access/access.ts'
import { type AppOptions, localApp } from '../api/app.ts'
import { hookRoutes } from '../api/hooks/hook-routes.ts'
import type { PublicKeys } from '../api/keys/fetched-keys.ts'
import type { Delivery, DeliveryAnswer } from '../contract/delivery.ts'
import type { SensorDefinitionInput } from '../contract/sensor.ts'
import { SensorDefined } from '../domain/sensors/sensor-defined.event.ts'
import { SensorRemoved } from '../domain/sensors/sensor-removed.event.ts'
import { ulidSource } from '../lib/ulid.ts'
import { newEvent } from '../model/event.ts'
import { Hooks } from '../server/workspace/hooks.ts'
import { seededBytes } from './seeded-bytes.ts'
import { SensorBench } from './sensor-bench.ts'
import { VirtualClock } from './virtual-clock.ts'

type Config = SensorDefinitionInput['config']

/** The routes for senders as a server has them, over sensors on record. What is delivered is noted, and answered as the test says. */
export class HookBench {
  readonly clock = new VirtualClock(Date.UTC(2021, 1, 25, 15, 2, 10))
  readonly delivered: Delivery[] = []
  readonly troubles: unknown[] = []
  readonly hooks: Hooks
  readonly app: ReturnType<typeof localApp>
  environment: Record<string, string | undefined> = {}
  isEvaluating = true
  answer: (delivery: Delivery) => Promise<DeliveryAnswer> = async ({ message }) => ({
    kind: 'accepted',
    message_id: message.id,
    eval_id: 'e1',
    run_ids: ['r1'],
    runs: [],
    repeated: false,
    conflict: false,
  })
  readonly #sensors = new SensorBench()

  constructor(keys?: PublicKeys) {
    const mintId = ulidSource(() => this.clock.now(), seededBytes(7))
    const nothing = async () => Promise.reject(new Error('hooks neither try nor poll'))
    const deliver = (delivery: Delivery) => {
      this.delivered.push(delivery)
      return this.answer(delivery)
    }
    this.hooks = new Hooks(
      {
        scope: { tenant_id: 'acme', workspace_id: 'analytics' },
        rows: () => this.#sensors.bench.state,
        now: () => this.clock.now(),
        mintId,
      },
      {
        environment: new Proxy(this.environment, { get: (_, name) => this.environment[String(name)] }),
        deliveries: () => (this.isEvaluating ? { deliver, dryRun: nothing, poll: nothing } : undefined),
        url: () => 'http://127.0.0.1:4400',
        onTrouble: (error) => this.troubles.push(error),
        ...(keys !== undefined && { keys }),
      },
    )
    const unused = {} as AppOptions
    const hooks = hookRoutes(this.hooks)
    this.app = localApp({ ...unused, access: NO_ACCESS, own: () => ({ hosts: ['127.0.0.1'] }), instance: 'one', hooks })
  }

  define(config: Config, id = 'inbox'): this {
    const facts = { sensor_id: id, sensor_name: `the ${id}`, definition_hash: JSON.stringify(config), request_id: id }
    this.#sensors.write([newEvent(SensorDefined, { ...facts, config })])
    return this
  }

  remove(id = 'inbox'): void {
    this.#sensors.write([newEvent(SensorRemoved, { sensor_id: id, request_id: `no ${id}`, removed_by: 'ana' })])
  }

  /** Sends a message to the path `orders`, by a name that the server does not know. */
  async send(
    headers: Record<string, string>,
    body: string | Uint8Array<ArrayBuffer> = '',
    path = '/hooks/acme/analytics/orders',
  ) {
    const request = new Request(`https://hooks.example${path}`, {
      method: 'POST',
      headers: { host: 'hooks.example', ...headers },
      body,
    })
    // Undici makes a text of its own type; a sender without a type has none.
    if (!('content-type' in headers)) request.headers.delete('content-type')
    const response = await this.app.fetch(request)
    const answer: unknown = await response.json()
    return { status: response.status, headers: response.headers, answer }
  }
}
