/** A small shop's morning, written as facts: what the ledger holds, what the tables say, and how to ask them. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { systemClock } from '../../src/adapters/system/clock.ts'
import { attemptId } from '../../src/domain/dispatch/dispatch-ids.ts'
import { DispatchRequested } from '../../src/domain/dispatch/dispatch-requested.event.ts'
import { orchestration } from '../../src/domain/index.ts'
import { requestFingerprint, runIdFromRunKey } from '../../src/domain/runs/run-ids.ts'
import { RunRequested } from '../../src/domain/runs/run-requested.event.ts'
import { PlanCreated } from '../../src/domain/tasks/plan-created.event.ts'
import { TaskFinished } from '../../src/domain/tasks/task-finished.event.ts'
import { TaskStarted } from '../../src/domain/tasks/task-started.event.ts'
import { TimerFired } from '../../src/domain/timers/timer-fired.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { newEvent } from '../../src/model/event.ts'

const dir = join(process.cwd(), '.servo', 'demo')
rmSync(dir, { recursive: true, force: true })

const scope = { tenant_id: 'demo', workspace_id: 'shop' }
const store = fsStore(dir)
const ledger = new Ledger({
  store,
  scope,
  clock: systemClock,
  ulid: ulidSource(systemClock.now, randomBytes),
  source: 'servo/demo',
})
const compactor = await Compactor.open({ store, scope, registry: orchestration, clock: systemClock, name: 'demo' })
const now = (): string => new Date(systemClock.now()).toISOString()

/** orders ──► revenue ──► headline, for one day. The payment provider is down on the third. */
async function runDay(day: string, mishap?: 'retry' | 'failure'): Promise<void> {
  const request = { asset_selection: ['orders', 'revenue', 'headline'], partition_selection: [day] }
  const run_key = `user:shop-${day}`
  const run_id = runIdFromRunKey(scope.tenant_id, scope.workspace_id, run_key, { id: 'demo-1', value: 'not a secret' })
  const task = (asset: string, upstream: string[]) => ({
    task_key: `${asset}:${day}`,
    asset_key: asset,
    partition_key: day,
    depends_on: upstream.map((key) => `${key}:${day}`),
    max_attempts: 2,
  })
  await ledger.append([
    newEvent(RunRequested, {
      ...request,
      run_key,
      run_id,
      secret_id: 'demo-1',
      request_fingerprint: requestFingerprint(request),
      trigger_source_ref: { type: 'manual', user_id: 'ada', request_id: day },
    }),
    newEvent(PlanCreated, {
      run_id,
      plan_id: `plan-${day}`,
      part: 0,
      parts: 1,
      tasks: [task('orders', []), task('revenue', ['orders']), task('headline', ['revenue'])],
    }),
  ])
  const attemptOnce = async (
    asset: string,
    attempt: number,
    error?: { message: string; retryable: boolean },
  ): Promise<void> => {
    const fact = { run_id, task_key: `${asset}:${day}`, attempt, attempt_id: attemptId(run_id, `${asset}:${day}`, attempt) }
    const started_at = now()
    await ledger.append([newEvent(DispatchRequested, { ...fact, worker_queue: 'default' })])
    await ledger.append([newEvent(TaskStarted, { ...fact, worker_id: 'worker-1', started_at })])
    const outcome =
      error === undefined
        ? { outcome: 'SUCCEEDED' as const, retryable: true }
        : { outcome: 'FAILED' as const, retryable: error.retryable, error_message: error.message }
    await ledger.append([
      newEvent(TaskFinished, { ...fact, worker_id: 'worker-1', started_at, completed_at: now(), ...outcome }),
    ])
  }
  if (mishap === 'failure')
    return await attemptOnce('orders', 1, { message: 'the payment provider answered 403', retryable: false })
  if (mishap === 'retry') {
    await attemptOnce('orders', 1, { message: 'the payment provider timed out', retryable: true })
    await ledger.append([
      newEvent(TimerFired, { timer_type: 'RETRY', run_id, task_key: `orders:${day}`, attempt: 1, fire_at: now() }),
    ])
  }
  await attemptOnce('orders', mishap === 'retry' ? 2 : 1)
  await attemptOnce('revenue', 1)
  await attemptOnce('headline', 1)
}

await runDay('2026-11-13')
await runDay('2026-11-14', 'retry')
await runDay('2026-11-15', 'failure')
const segments = await compactor.catchUp()
await compactor.publish({ kind: 'base' })
const { events } = compactor.manifest.watermarks
process.stdout.write(
  `\n${events} facts in ${segments} segments, folded and published as manifest ${compactor.manifest.number}.\n`,
)

const queries = [
  'select run_key, state, tasks_succeeded as ok, tasks_failed as failed, tasks_skipped as skipped from runs order by run_key',
  "select task_key, state, attempt, error_message, cause_task_key from tasks where state <> 'SUCCEEDED' or attempt > 1 order by task_key",
  'select asset_key, partition_key, last_attempt_outcome, last_materialization_at is not null as materialized from partition_status order by 1, 2',
]
for (const sql of queries) {
  process.stdout.write(`\n$ servo query .servo/demo "${sql}"\n`)
  servo('query', dir, sql)
}
process.stdout.write('\n$ servo verify .servo/demo\n')
servo('verify', dir)

function servo(...args: string[]): void {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, '../../src/cli/bin.ts'), ...args], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}
