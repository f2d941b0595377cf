import type { Hono } from 'hono'
import { addressed, type ReturnAddress } from '../../../api/addressed.ts'
import { isSameToken } from '../../../api/app.ts'
import { TaskTokens } from '../../../api/task-tokens.ts'
import { workerRoutes } from '../../../api/worker-routes.ts'
import type { ProjectManifest } from '../../../contract/project-manifest.ts'
import type { Scope } from '../../../engine/paths.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { WorkspaceSecrets } from '../../../ports/secrets.ts'
import type { ForeignDispatch } from './foreign-dispatch.ts'

export interface ForeignWorkersOptions {
  readonly foreign: ForeignDispatch
  readonly secrets: Pick<WorkspaceSecrets, 'task_tokens' | 'api_token'>
  readonly scope: Scope
  readonly clock: AlarmClock
}

/** The routes that workers elsewhere call, and the address that dispatches give them. */
export class ForeignWorkers {
  readonly routes: Hono
  readonly #foreign: ForeignDispatch
  readonly #address: ReturnAddress
  #url: string | undefined
  #queues: ProjectManifest['queues'] | undefined

  constructor({ foreign, secrets, scope, clock }: ForeignWorkersOptions) {
    const { id, value } = secrets.task_tokens
    const tokens = new TaskTokens({ keys: [{ id, secret: Buffer.from(value) }], clock })
    this.#foreign = foreign
    this.#address = { tokens, scope, baseUrl: () => this.#url ?? '' }
    const mayTakeWork = async (token: string) => (isSameToken(token, secrets.api_token) ? 'allowed' : 'unknown')
    this.routes = workerRoutes({ ...this.#address, callbacks: foreign, clock, mayTakeWork })
  }

  /** Workers find this server here from now on. */
  reachableAt(url: string): void {
    this.#url = url
    this.#route()
  }

  /** Uses the queues that the project declares. */
  useQueues(queues: ProjectManifest['queues']): void {
    this.#queues = queues
    this.#route()
  }

  /** A queue is told of work only once its workers can answer. */
  #route(): void {
    if (this.#url === undefined || this.#queues === undefined) return
    this.#foreign.route({ queues: this.#queues, address: (envelope) => addressed(envelope, this.#address) })
  }
}
