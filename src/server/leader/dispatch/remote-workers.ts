import { type ReturnAddress, withReturnAddress } from '../../../api/return-address.ts'
import type { Route } from '../../../api/routing/route.ts'
import { TaskTokens } from '../../../api/task-tokens.ts'
import { workerRoutes } from '../../../api/worker-routes.ts'
import type { ProjectManifest } from '../../../contract/project-manifest.ts'
import type { Scope } from '../../../engine/paths.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { WorkspaceSecrets } from '../../../ports/secrets.ts'
import type { RemoteDispatch } from './remote-dispatch.ts'

export interface RemoteWorkersOptions {
  readonly remote: RemoteDispatch
  readonly secrets: Pick<WorkspaceSecrets, 'task_tokens'>
  readonly scope: Scope
  readonly clock: AlarmClock
}

/** The routes that remote workers call, and the address that dispatches give them. */
export class RemoteWorkers {
  readonly routes: readonly Route[]
  readonly #remote: RemoteDispatch
  readonly #address: ReturnAddress
  #url: string | undefined
  #queues: ProjectManifest['queues'] | undefined

  constructor({ remote, secrets, scope, clock }: RemoteWorkersOptions) {
    const { id, value } = secrets.task_tokens
    const tokens = new TaskTokens({ keys: [{ id, secret: Buffer.from(value) }], clock })
    this.#remote = remote
    this.#address = { tokens, scope, baseUrl: () => this.#url ?? '' }
    this.routes = workerRoutes({ ...this.#address, callbacks: remote, clock })
  }

  /** Workers find this server here from now on. */
  reachableAt(url: string): void {
    this.#url = url
    this.#pushToQueues()
  }

  /** Uses the queues that the project declares. */
  useQueues(queues: ProjectManifest['queues']): void {
    this.#queues = queues
    this.#pushToQueues()
  }

  /** Work is pushed to a queue only once its workers can answer. */
  #pushToQueues(): void {
    if (this.#url === undefined || this.#queues === undefined) return
    this.#remote.pushTo({ queues: this.#queues, address: (envelope) => withReturnAddress(envelope, this.#address) })
  }
}
