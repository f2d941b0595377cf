import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fsStore } from '../adapters/fs/object-store.ts'
import type { RunsApi } from '../api/run-contract.ts'
import { orchestration } from '../domain/index.ts'
import { RunCancelRequested } from '../domain/runs/run-cancel-requested.event.ts'
import { isRunOver, type RunState } from '../domain/runs/runs.table.ts'
import { Ledger } from '../engine/ledger.ts'
import { Paths } from '../engine/paths.ts'
import type { State } from '../engine/state.ts'
import { View } from '../engine/view.ts'
import { ServoError } from '../lib/error.ts'
import { DAY_MS } from '../lib/time.ts'
import { ulidSource } from '../lib/ulid.ts'
import { newEvent } from '../model/event.ts'
import { systemClock } from '../ports/clock.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { localScope } from './local-files.ts'
import { RunReader } from './run-reader.ts'
import { storedLogs } from './runs-api.ts'
import { sqlOver } from './sql-rows.ts'

/** Nobody else is waiting: better slow than wrong. */
const PATIENT = { maxEvents: 5_000_000, maxTimeMs: 60_000, maxAgeMs: DAY_MS }

/** What the folder of a project holds, read when no server runs: all that has happened, whether or not it is in tables yet. */
export async function openOffline(servoDir: string): Promise<{ store: ObjectStore; view: View; state: State }> {
  if (!existsSync(servoDir)) {
    throw new ServoError('not_found', 'no_state', `there is nothing in ${servoDir} yet`, {
      hint: 'Start the project: servo dev, or run something: servo run "*"',
    })
  }
  const store = fsStore(servoDir)
  const view = await View.open({ store, scope: localScope, registry: orchestration, clock: systemClock })
  const { state, complete } = await view.fresh(PATIENT)
  if (!complete) {
    throw new ServoError(
      'unavailable',
      'tail_too_long',
      'more has happened since the tables were written than can be read here',
      {
        hint: 'Start the project once (servo dev), or run servo verify to see whether something is damaged.',
      },
    )
  }
  return { store, view, state }
}

/** What can be known and asked of runs while no server runs: everything is in the folder, only nothing happens. */
export async function offlineRuns(servoDir: string): Promise<RunsApi> {
  const { store, state } = await openOffline(servoDir)
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
      const ulid = ulidSource(systemClock.now, (length) => randomBytes(length))
      const ledger = new Ledger({ store, scope: localScope, clock: systemClock, ulid, source: 'servo/cli' })
      const payload = { run_id, requested_by: user, reason: reason ?? null }
      const { events } = await ledger.append([newEvent(RunCancelRequested, payload, { correlation_id: run_id, actor: user })])
      return { run_id, accepted_event_id: events[0]?.event_id as string }
    },
  }
}

const needsServer = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server runs this project', { hint: 'Start one: servo dev' })
