import { type ProjectManifestInput, projectManifest } from '../../src/contract/project-manifest.ts'
import { Paths } from '../../src/engine/paths.ts'
import { loadSecrets } from '../../src/server/leader/load-secrets.ts'
import { Server, type ServerOptions } from '../../src/server/server.ts'
import type { StoreRequest } from '../../src/testing/counting-store.ts'
import { memoryComponents } from '../../src/testing/memory-components.ts'
import { ScriptedLease } from '../../src/testing/scripted-lease.ts'
import { ScriptedWorkers } from '../../src/testing/scripted-workers.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { interceptedStore } from '../engine/intercepted-store.ts'

const API = 'http://127.0.0.1:4400/api/v1/orchestration'

type Script = ConstructorParameters<typeof ScriptedWorkers>[1]

/** A whole server on virtual time whose lease is in the hands of the test, and which the test sees asking its store. */
export class Led {
  readonly clock = new VirtualClock()
  readonly lease = new ScriptedLease()
  readonly workers: ScriptedWorkers
  readonly memory = memoryComponents(this.clock)
  readonly paths = new Paths(this.memory.scope)
  /** Why the server stopped, each time that it did. */
  readonly stopped: unknown[] = []
  /** Called before each request to the store is carried out. */
  before: (request: StoreRequest) => Promise<void> | void = () => undefined
  server!: Server
  #token = ''

  constructor(script?: Script) {
    this.workers = new ScriptedWorkers(this.clock, script)
  }

  static async open(
    /** Without one, no project is loaded. */
    project?: Omit<ProjectManifestInput, 'project'>,
    also: Pick<
      ServerOptions,
      'post' | 'compaction' | 'automation' | 'environment' | 'evaluator' | 'onTrouble' | 'metrics'
    > = {},
    script?: Script,
  ): Promise<Led> {
    const led = new Led(script)
    const components = { ...led.memory, store: interceptedStore(led.memory.store, (request) => led.before(request)) }
    const { secrets } = await loadSecrets(components)
    led.#token = secrets.api_token
    led.server = await Server.open({
      components,
      lease: led.lease,
      secrets,
      instance: 'server-1',
      workers: led.workers,
      concurrency: () => 8,
      onStopped: (error) => led.stopped.push(error),
      ...also,
    })
    led.server.reachableAt('http://127.0.0.1:4400')
    if (project !== undefined) await led.server.define(projectManifest.parse({ project: 'led', ...project }))
    return led
  }

  async request(key: string, selection = '*'): Promise<string> {
    return (await this.server.api.runs.request({ select: [selection], key }, 'tester')).run_id
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}) {
    return this.#ask(path, { method: 'GET', headers })
  }

  post(path: string, body: object, token = this.#token, headers: Readonly<Record<string, string>> = {}) {
    return this.#ask(path, { method: 'POST', body: JSON.stringify(body), headers }, token)
  }

  ask(method: string, path: string, body?: object) {
    return this.#ask(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
  }

  /** What the server says to programs that watch it, with a token or without. */
  async probe(path: string, token?: string) {
    const headers = { host: '127.0.0.1:4400', ...(token !== undefined && { authorization: `Bearer ${token}` }) }
    const response = await this.server.fetch(new Request(new URL(path, API), { headers }))
    return { status: response.status, text: await response.text() }
  }

  async metrics(): Promise<string> {
    return (await this.probe('/metrics', this.#token)).text
  }

  async #ask(path: string, init: { method: string; body?: string; headers?: object }, token = this.#token) {
    const headers = {
      ...init.headers,
      host: '127.0.0.1:4400',
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
    }
    const response = await this.server.fetch(new Request(`${API}${path}`, { ...init, headers }))
    // biome-ignore lint/suspicious/noExplicitAny: whatever the server says.
    const answered = (await response.json()) as any
    if (answered.code === 'wrong_answer') throw new Error(`${init.method} ${path}: ${answered.detail}`)
    return { status: response.status, body: answered }
  }
}
