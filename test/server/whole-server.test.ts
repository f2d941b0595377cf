import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { type AssetDefinitionInput, projectManifest } from '../../src/contract/project-manifest.ts'
import { orchestration } from '../../src/domain/index.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { Paths } from '../../src/engine/paths.ts'
import { sha256 } from '../../src/lib/hash.ts'
import type { Components } from '../../src/server/components.ts'
import { loadSecrets } from '../../src/server/leader/load-secrets.ts'
import { Server } from '../../src/server/server.ts'
import { memoryComponents } from '../../src/testing/memory-components.ts'
import { ScriptedWorkers } from '../../src/testing/scripted-workers.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const TASKS = 500
const API = 'http://127.0.0.1:4400/api/v1/orchestration'

/** Every task has up to two above it; a third of them goes to workers remote. */
function project() {
  const assets = Array.from({ length: TASKS }, (_, i): AssetDefinitionInput => {
    const above = [i - 20, i - 57].filter((upstream) => upstream >= 0)
    return {
      asset_key: `t/${String(i).padStart(3, '0')}`,
      kind: 'asset',
      deps: above.map((upstream) => ({ asset_key: `t/${String(upstream).padStart(3, '0')}` })),
      retry: { max_attempts: 4, initial_ms: 2_000 },
      ...(i % 3 === 1 && { queue: 'remote' }),
    }
  })
  return projectManifest.parse({ project: 'whole', assets })
}

/** A remote worker: it knows only the routes of the server, and does everything it is given, some of it slowly. */
class RemoteWorker {
  readonly #server: Server
  readonly #clock: VirtualClock
  readonly #token: string
  readonly #dice: (length: number) => Uint8Array
  done = 0

  constructor(server: Server, clock: VirtualClock, token: string, seed: number) {
    this.#server = server
    this.#clock = clock
    this.#token = token
    this.#dice = seededBytes(seed)
  }

  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const claim = { worker_id: 'remote-1', queues: ['remote'], capacity: 8, wait_ms: 20_000 }
      const { dispatches } = await this.#post('/workers/claim', this.#token, claim)
      await Promise.all((dispatches as DispatchEnvelope[]).map((dispatch) => this.#attempt(dispatch)))
    }
  }

  async #attempt(dispatch: DispatchEnvelope): Promise<void> {
    const at = `/tasks/${dispatch.task_id}`
    let token = dispatch.task_token as string
    await this.#post(`${at}/started`, token, { worker_id: 'remote-1' })
    const [dice = 0] = this.#dice(1)
    for (let beat = 0; beat < (dice % 25 === 0 ? 3 : 0); beat++) {
      await this.#clock.sleep(15_000)
      const answer = await this.#post(`${at}/heartbeat`, token, { worker_id: 'remote-1' })
      token = (answer['token'] as string | undefined) ?? token
    }
    const failed = { outcome: 'FAILED', error: { category: 'user', message: 'it broke', retryable: true } }
    const made = { outcome: 'SUCCEEDED', materialization_id: `m_${dispatch.attempt_id}` }
    await this.#post(`${at}/completed`, token, dice % 11 === 0 && dispatch.attempt === 1 ? failed : made)
    this.done += 1
  }

  async #post(path: string, token: string, body: object): Promise<Record<string, unknown>> {
    const response = await this.#server.fetch(
      new Request(`${API}${path}`, {
        method: 'POST',
        headers: { host: '127.0.0.1:4400', authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      }),
    )
    expect(response.status, path).toBeLessThan(300)
    return (await response.json()) as Record<string, unknown>
  }
}

/** Plays the whole run and says what is left of it. */
async function play(seed: number) {
  const clock = new VirtualClock()
  const components = memoryComponents(clock, seed)
  const lease = await components.lease.claim({ name: 'server-1', term: 'standing' })
  if (!lease.held) throw new Error('somebody else leads')
  const { secrets } = await loadSecrets(components)
  const dice = seededBytes(seed + 1)
  const workers = new ScriptedWorkers(clock, ({ attempt }) => {
    const [first = 0, second = 0] = dice(2)
    const fails = first % 13 === 0 && attempt === 1
    const error = { category: 'user' as const, message: 'it broke', retryable: true }
    return { ms: second, ...(fails && { result: { outcome: 'FAILED' as const, error } }) }
  })
  const stopped: unknown[] = []
  const server = await Server.open({
    components,
    lease,
    secrets,
    instance: 'server-1',
    workers,
    concurrency: () => 8,
    onTrouble: (error) => stopped.push(error),
    onStopped: (error) => stopped.push(error),
  })
  await lease.announce('http://127.0.0.1:4400')
  server.reachableAt('http://127.0.0.1:4400')
  await server.define(project())
  const { run_id } = await server.api.runs.request({ select: ['*'], key: 'all' }, 'tester')
  const state = async () => (await server.api.runs.get(run_id)).run
  const remote = new RemoteWorker(server, clock, secrets.api_token, seed + 2)
  let isOver = false
  const working = remote.work(() => isOver)
  while ((await state())['finished_at'] === null) await clock.advance(5_000)
  const run = await state()
  isOver = true
  await clock.advance(30_000)
  await working
  const closing = server.close()
  await clock.advance(10_000)
  await closing
  expect(stopped).toEqual([])
  return { run, components, attempts: workers.started.length + remote.done, ledger: await bytesOf(components) }
}

async function bytesOf({ store, scope }: Components): Promise<string> {
  const parts: string[] = []
  for await (const { path } of store.list(new Paths(scope).ledger)) {
    parts.push(path, Buffer.from((await store.get(path)) as Uint8Array).toString('base64'))
  }
  return sha256(parts.join('\n'))
}

test('a whole server plays a run of 500 tasks on virtual time, in memory, and the same seed gives the same ledger', async () => {
  const realTimers = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const first = await play(1)
  expect(first.run).toMatchObject({ state: 'SUCCEEDED', tasks_total: TASKS, tasks_succeeded: TASKS })
  expect(first.attempts).toBeGreaterThan(TASKS)
  const { store, scope } = first.components
  const { problems, segments } = await verify({ store, scope, registry: orchestration, scratch: memoryStore() })
  expect(problems).toEqual([])
  expect(segments).toBeGreaterThan(100)
  expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length).toBeLessThanOrEqual(realTimers)

  expect((await play(1)).ledger).toBe(first.ledger)
  expect((await play(2)).ledger).not.toBe(first.ledger)
})
