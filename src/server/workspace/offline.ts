import type { AssetsApi } from '../../api/asset-contract.ts'
import type { RunsApi } from '../../api/run-contract.ts'
import { RunCancelRequested } from '../../domain/runs/run-cancel-requested.event.ts'
import { isRunOver, type RunState } from '../../domain/runs/runs.table.ts'
import { Paths } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { idempotencyKeys } from '../../model/system-tables.ts'
import { systemClock } from '../../ports/clock.ts'
import { CurrentGraph } from '../leader/current-graph.ts'
import { localScope } from '../machine/local-files.ts'
import { assetsApi } from './assets-api.ts'
import type { Recorded } from './known-assets.ts'
import { type OfflineState, openOffline } from './offline-state.ts'
import { RunReader } from './run-reader.ts'
import { storedLogs } from './runs-api.ts'
import { sqlOver } from './sql-rows.ts'

/** What can be known and asked of runs while no server runs: everything is in the folder, only nothing happens. */
export async function offlineRuns(servoDir: string): Promise<RunsApi> {
  const { store, state, ledger } = await openOffline(servoDir)
  const reader = new RunReader(() => state, sqlOver(servoDir, store, localScope))
  return {
    request: () => Promise.reject(needsServer()),
    rerun: () => Promise.reject(needsServer()),
    list: ({ limit, state: wanted }) => reader.list({ limit, ...(wanted !== undefined && { state: wanted }) }),
    get: (runId) => reader.get(runId),
    logs: (runId, query) => storedLogs(reader, store, new Paths(localScope), runId, query),
    async *follow(runId) {
      const { run, tasks } = await reader.get(runId)
      yield { type: 'run', run }
      for (const task of tasks) yield { type: 'task', task }
    },
    async cancel(idOrStart, user, reason) {
      const { run } = await reader.get(idOrStart)
      const run_id = String(run['run_id'])
      if (isRunOver(run['state'] as RunState)) {
        throw new ServoError('conflict', 'run_over', `${run_id} is over`, { hint: 'There is nothing left to cancel.' })
      }
      const payload = { run_id, requested_by: user, reason: reason ?? null }
      const { events } = await ledger.append([newEvent(RunCancelRequested, payload, { correlation_id: run_id, actor: user })])
      return { run_id, accepted_event_id: events[0]?.event_id as string }
    },
  }
}

/** The same of assets: what is told of them is written to the ledger, and folded by whoever reads it next. */
export async function offlineAssets(servoDir: string): Promise<AssetsApi> {
  const offline = await openOffline(servoDir)
  const { state, store, ulid } = offline
  return assetsApi({
    graph: new CurrentGraph(() => state, systemClock.now),
    rows: () => state,
    lookup: offline.lookup,
    sql: sqlOver(servoDir, store, localScope),
    now: systemClock.now,
    mintId: ulid,
    submit: (events) => append(offline, events),
  })
}

/** Nobody folds here, so what is known already is found by its key and not written again. */
async function append({ ledger, lookup }: OfflineState, events: readonly NewEvent[]): Promise<Recorded> {
  const news: NewEvent[] = []
  for (const event of events) {
    const { definition, payload } = event
    const parsed = definition.parse(payload)
    const key = parsed.success ? definition.idempotencyKey(parsed.data) : undefined
    // What is not valid is refused by the ledger, which says why.
    if (key === undefined || (await lookup(idempotencyKeys, key)) === undefined) news.push(event)
  }
  if (news.length === 0) return { event_id: null, news: 0 }
  const { events: written } = await ledger.append(news)
  return { event_id: written[0]?.event_id as string, news: news.length }
}

const needsServer = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server runs this project', { hint: 'Start one: servo dev' })
