import type { Hono } from 'hono'
import { type ReturnAddress, withReturnAddress } from '../../src/api/return-address.ts'
import { routerOf } from '../../src/api/routing/router.ts'
import { TaskTokens } from '../../src/api/task-tokens.ts'
import { workerRoutes } from '../../src/api/worker-routes.ts'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { sha256Bytes } from '../../src/lib/hash.ts'
import type { Orchestrator } from '../../src/server/leader/orchestrator.ts'
import { machineAccess } from '../../src/testing/access/machine-access.ts'
import { scope, type World } from './world.ts'

export interface Answer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server says.
  readonly body: any
}

/** Remote workers: they know only the routes of the server, and talk to whichever process answers there now. */
export class Remote {
  readonly world: World
  readonly address: ReturnAddress
  /** Tokens that heartbeats brought. */
  readonly #renewed = new Map<string, string>()
  readonly #apps = new WeakMap<Orchestrator, Hono>()

  constructor(world: World) {
    this.world = world
    const tokens = new TaskTokens({ keys: [{ id: 'k1', secret: sha256Bytes('k1') }], clock: world.clock })
    this.address = { tokens, scope, baseUrl: () => 'https://servo.example' }
  }

  /** These queues are told of their work from now on. */
  pushTo(queues: Readonly<Record<string, { push: string }>>): void {
    this.world.orchestrator.remote.pushTo({ queues, address: (envelope) => withReturnAddress(envelope, this.address) })
  }

  async ask(worker_id: string, request: object = {}): Promise<DispatchEnvelope[]> {
    const { body } = await this.post('/workers/claim', 'worker-token', { worker_id, capacity: 1, ...request })
    return body.dispatches
  }

  readonly started = (of: DispatchEnvelope, worker_id: string): Promise<Answer> => this.#say(of, 'started', { worker_id })
  readonly completed = (of: DispatchEnvelope, result: object = made(of)): Promise<Answer> => this.#say(of, 'completed', result)

  /** Claims and begins, in one breath. */
  async take(worker_id: string, request: object = {}): Promise<DispatchEnvelope> {
    const [envelope] = await this.ask(worker_id, request)
    if (envelope === undefined) throw new Error('there is no work')
    await this.started(envelope, worker_id)
    return envelope
  }

  async heartbeat(of: DispatchEnvelope, worker_id?: string): Promise<Answer> {
    const { status, body } = await this.#say(of, 'heartbeat', { worker_id })
    const { token, token_expires_at: _, ...rest } = body
    if (token !== undefined) this.#renewed.set(of.attempt_id, token)
    return { status, body: rest }
  }

  #say(of: DispatchEnvelope, what: string, body: object): Promise<Answer> {
    return this.post(`/tasks/${of.task_id}/${what}`, this.#renewed.get(of.attempt_id) ?? of.task_token ?? '', body)
  }

  async post(path: string, token: string, body: object, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await this.#app.request(`/api/v1/orchestration${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    })
    return { status: response.status, body: await response.json() }
  }

  get #app(): Hono {
    const { orchestrator, clock } = this.world
    let app = this.#apps.get(orchestrator)
    if (app === undefined) {
      const routes = workerRoutes({ ...this.address, callbacks: orchestrator.remote, clock })
      app = routerOf(routes, machineAccess('worker-token'))
      this.#apps.set(orchestrator, app)
    }
    return app
  }
}

export const made = (of: DispatchEnvelope) => ({ outcome: 'SUCCEEDED', materialization_id: `m_${of.attempt_id}` })
