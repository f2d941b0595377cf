import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import { graphOf } from '../../src/domain/assets/definitions.ts'
import { taskKey } from '../../src/domain/assets/graph-partitions.ts'
import { attemptId, dispatchId, queueSafeId } from '../../src/domain/dispatch/dispatch-ids.ts'
import { dispatchOutbox } from '../../src/domain/dispatch/dispatch-outbox.table.ts'
import { orchestration } from '../../src/domain/index.ts'
import { planParts } from '../../src/domain/planning/plan-parts.ts'
import { againKey } from '../../src/domain/runs/again.ts'
import { planController } from '../../src/domain/runs/plan.controller.ts'
import { requestFingerprint, runIdFromRunKey } from '../../src/domain/runs/run-ids.ts'
import { traceOf, traceOfAttempt } from '../../src/domain/runs/run-trace.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { emptyPollsId, evalIdOf, runKeyOfEvaluation } from '../../src/domain/sensors/evaluation-ids.ts'
import { backfillSubject, evalSubject, runSubject, sensorSubject, taskSubject } from '../../src/domain/subjects.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { localWorkerId } from '../../src/domain/tasks/worker-id.ts'
import { retryDelayMs } from '../../src/domain/timers/retry.controller.ts'
import { type TimerPayload, timerId } from '../../src/domain/timers/timer.ts'
import { TimerRequested } from '../../src/domain/timers/timer-requested.event.ts'
import { timerSlot, timerSubject, timers } from '../../src/domain/timers/timers.table.ts'
import { writeTraceparent } from '../../src/lib/traceparent.ts'
import type { EventDefinition } from '../../src/model/event.ts'
import { rangeKey, writeKey } from '../../src/partitions/key.ts'
import { knowledgeOf } from '../../src/server/workspace/knowledge.ts'
import { workspaceApi } from '../../src/server/workspace/workspace.ts'
import { RunStory, Story } from '../../src/testing/histories/story.ts'
import { World } from '../server/world.ts'

/**
 * Ids and keys that are on record for ever: another formula would make a second run of the same key, a second attempt, or a fact
 * that is counted twice. The file was worked out without the code that is tested here, and nothing writes it: when a formula
 * is meant to change, what is in ledgers already has to keep its meaning first.
 */
interface Golden {
  readonly ids: Readonly<Record<string, string>>
  readonly events: readonly { readonly type: string; readonly payload: unknown; readonly key: string }[]
}
const golden = JSON.parse(fs.readFileSync(path.join(import.meta.dirname, 'keys.json'), 'utf8')) as Golden

const secret = { id: 'secret-1', value: 'not a secret' }
const runOf = (key: string, tenant = 'acme', workspace = 'analytics', value = secret.value): string =>
  runIdFromRunKey(tenant, workspace, key, { ...secret, value })
const run = runOf('user:nightly')
const task = taskKey('raw/orders', '2025-01-15')
const dispatch = dispatchId(run, task, 2)
const attempt = attemptId(run, task, 2)

const fire_at = '2025-01-15T10:00:00.000Z'
const watched = { run_id: run, task_key: task, attempt: 1, fire_at }
const alarms: Readonly<Record<string, TimerPayload>> = {
  retry: { timer_type: 'RETRY', ...watched },
  heartbeat: { timer_type: 'HEARTBEAT_CHECK', ...watched },
  deadline: { timer_type: 'SLA_CHECK', ...watched },
  'deadline of a run': { timer_type: 'SLA_CHECK', run_id: run, fire_at },
}
const timerIds = Object.entries(alarms).flatMap(([name, alarm]) => [
  [`${name} timer`, timerId(alarm)],
  [`${name} timer, as queues accept it`, queueSafeId('t', timerId(alarm))],
])

const sensorMessage = { source: 'push', message_id: 'm 1:2', try: 2 } as const
const sensorPoll = { source: 'poll', state_version: 7 } as const

const ids: Readonly<Record<string, string>> = {
  'run of a key that a person chose': run,
  'run of a manual request': runOf('manual:01K00000000000000000000000'),
  'run of a schedule': runOf('sched:nightly:1736935200'),
  'run of a sensor': runOf('sensor:inbox:eval-1'),
  'evaluation of a message': evalIdOf('s1', sensorMessage, 'b1'),
  'evaluation of a poll': evalIdOf('s1', sensorPoll, 'b1'),
  'polls that found nothing': emptyPollsId('s1', 7),
  'run key of a message': runKeyOfEvaluation('s1', sensorMessage, 3),
  'run key of a poll': runKeyOfEvaluation('s1', sensorPoll, 3),
  'run key that a sensor chose': runKeyOfEvaluation('s1', sensorPoll, 3, 'inv/7'),
  'run key that is too long': runKeyOfEvaluation('s1', sensorPoll, 3, 'k'.repeat(151)),
  'run key that is asked for again': againKey('user:nightly', 'run_x'),
  'run of a backfill': runOf('backfill:january:chunk:3'),
  'run of a rerun': runOf(`rerun:${run}:again`),
  'run of automation': runOf('auto:decision-1'),
  'run of another tenant': runOf('user:nightly', 'hooli'),
  'run of another workspace': runOf('user:nightly', 'acme', 'marketing'),
  'run with another secret': runOf('user:nightly', 'acme', 'analytics', 'another secret'),
  'fingerprint of a request': requestFingerprint({
    asset_selection: ['b', 'a'],
    partition_selection: ['2025-01-15', '2025-01-14'],
    labels: { team: 'shop' },
  }),
  'fingerprint of a request for whole assets': requestFingerprint({ asset_selection: ['a'] }),
  attempt,
  dispatch,
  'dispatch, as queues accept it': queueSafeId('d', dispatch),
  'worker of this process': localWorkerId('instance-1'),
  ...Object.fromEntries(timerIds),
  'slot of a retry timer': timerSlot(alarms['retry'] as TimerPayload),
  'slot of a heartbeat timer': timerSlot(alarms['heartbeat'] as TimerPayload),
  'slot of a deadline timer': timerSlot(alarms['deadline'] as TimerPayload),
  'slot of a timer on a run': timerSlot(alarms['deadline of a run'] as TimerPayload),
  'subject of a timer of a run': timerSubject(alarms['retry'] as TimerPayload),
  'what facts about a run wait for': runSubject(run),
  'what facts about a task wait for': taskSubject(run, task),
  'what facts about an evaluation wait for': evalSubject('eval-1'),
  'what facts about a sensor wait for': sensorSubject('inbox'),
  'what facts about a backfill wait for': backfillSubject('january'),
  'task of a whole asset': taskKey('raw/orders', null),
  'task of a partition': task,
  'task of a range': taskKey('raw/orders', rangeKey('2025-01-01', '2025-01-31', false)),
  'task of several dimensions': taskKey('raw/orders', writeKey({ region: 'eu', date: '2025-01-15' })),
  'partition of several dimensions': writeKey({ region: 'eu', date: '2025-01-15' }),
  'partition with values that need encoding': writeKey({ region: 'eu/west ü', 'a,b': '1=2' }),
  'range of partitions': rangeKey('2025-01-01', '2025-01-31', false),
  'range of partitions of several dimensions': rangeKey('date=2025-01-01,region=eu', 'date=2025-01-31,region=eu', true),
  'trace of a run without one': writeTraceparent(traceOfAttempt(traceOf(run, null), attempt, true)),
  plan: planParts(run, 'g1', [{ task_key: task }])[0]?.plan_id ?? '',
  'version of a graph': graphOf([{ definition: assetDefinition.parse({ asset_key: 'a', kind: 'asset' }), removed: false }])
    .version,
  'delay of a retry in ms': String(
    retryDelayMs({ max_attempts: 9, backoff: 'exponential', initial_ms: 1_000, max_ms: 60_000, jitter: true }, attempt, 3),
  ),
}

describe('what is on record keeps its name', () => {
  test.each(Object.entries(golden.ids))('the id of a %s', (name, id) => {
    expect(ids[name]).toBe(id)
  })

  test('[R2] the delay of a retry follows from its attempt: every process, of whatever version, waits as long', () => {
    expect(ids['delay of a retry in ms']).toBe(golden.ids['delay of a retry in ms'])
  })

  test('every id that is made here is in the file', () => {
    expect(Object.keys(ids).filter((name) => golden.ids[name] === undefined)).toEqual([])
  })

  test('the plan of a run that cannot be planned is named by the reason', () => {
    const asked = { run_id: run, state: 'PENDING', plan_parts: 0, asset_selection: ['nothing'], row_version: '' }
    const controller = planController()
    controller.observe(runs, { ...asked, partition_selection: null, priority: 0 })
    const [plan] = controller.decide({ rows: new Story().bench.state, now: 0, lagMs: 0 }).flat()
    const { plan_id, error } = (plan?.payload ?? {}) as { plan_id?: string; error?: string }
    expect(error).toContain('nothing')
    expect(plan_id).toBe(`plan_${createHash('sha256').update(`${run}\n${error}`).digest('hex').slice(0, 26)}`)
  })

  test('[T6][T11] rows have these ids and no others', () => {
    const story = new Story()
    const told = new RunStory(story, 'report')
    told.requested()
    told.planned({ orders: [] })
    told.dispatched('orders')
    const place = { run_id: told.runId, task_key: 'orders', attempt: 1 }
    story.tell(TimerRequested, { timer_type: 'HEARTBEAT_CHECK', ...place, fire_at })
    const readable = dispatchId(told.runId, 'orders', 1)
    const id = attemptId(told.runId, 'orders', 1)
    expect(story.rows(taskAttempts)).toMatchObject([{ attempt_id: id }])
    expect(story.rows(dispatchOutbox)).toMatchObject([
      { dispatch_id: readable, cloud_task_id: queueSafeId('d', readable), attempt_id: id },
    ])
    const alarm = timerId({ timer_type: 'HEARTBEAT_CHECK', ...place, fire_at })
    expect(story.rows(timers)).toMatchObject([
      {
        subject: runSubject(told.runId),
        slot: 'HEARTBEAT_CHECK:orders:1',
        timer_id: alarm,
        cloud_task_id: queueSafeId('t', alarm),
      },
    ])
  })

  test('[T3] run keys of what people ask for say who asked', async () => {
    const world = await World.open()
    await world.define({ a: [] })
    const components = { ...world.components, ulid: () => '01K00000000000000000000000' }
    const asked = workspaceApi(knowledgeOf(components, world.orchestrator), { runIds: () => secret }).runs
    const named = await asked.request({ select: ['*'], key: 'nightly' }, 'ada')
    const unnamed = await asked.request({ select: ['*'] }, 'ada')
    await world.clock.advance(1_000)
    const again = await asked.rerun(named.run_id, { mode: 'all', key: 'again' }, 'ada')
    const keys = [named, unnamed, again].map(({ run_id }) => [run_id, world.run(run_id)?.run_key])
    expect(keys).toEqual([
      [golden.ids['run of a key that a person chose'], 'user:nightly'],
      [golden.ids['run of a manual request'], 'manual:01K00000000000000000000000'],
      [golden.ids['run of a rerun'], `rerun:${run}:again`],
    ])
  })
})

describe('[F3] a fact that is told again is recognised by its key', () => {
  const definitions = new Map<string, EventDefinition>(orchestration.events.map((each) => [each.type, each]))

  test.each(golden.events)('$type is $key', ({ type, payload, key }) => {
    const parsed = definitions.get(type)?.parse(payload)
    expect(parsed, `${type} does not read its payload any more`).toMatchObject({ success: true })
    expect(definitions.get(type)?.idempotencyKey(parsed?.success ? parsed.data : undefined)).toBe(key)
  })

  test('every type of event is in the file, and no two facts of it share a key', () => {
    const known = new Set(golden.events.map(({ type }) => type))
    expect(
      [...definitions.keys()].filter((type) => !known.has(type)),
      'Add a payload and its key to keys.json.',
    ).toEqual([])
    expect(new Set(golden.events.map(({ key }) => key)).size).toBe(golden.events.length)
  })
})
