import { requestFingerprint } from '../../domain/runs/run-ids.ts'
import { type EvaluationSource, evalIdOf, runKeyOfEvaluation } from '../../domain/sensors/evaluation-ids.ts'
import { SensorCursorReset } from '../../domain/sensors/sensor-cursor-reset.event.ts'
import { SensorDefined } from '../../domain/sensors/sensor-defined.event.ts'
import { SensorEvaluated } from '../../domain/sensors/sensor-evaluated.event.ts'
import { SensorMessageConflicted } from '../../domain/sensors/sensor-message-conflicted.event.ts'
import { SensorMessageReplayed } from '../../domain/sensors/sensor-message-replayed.event.ts'
import { SensorPaused } from '../../domain/sensors/sensor-paused.event.ts'
import { SensorRemoved } from '../../domain/sensors/sensor-removed.event.ts'
import { SensorResumed } from '../../domain/sensors/sensor-resumed.event.ts'
import { SensorsPolled } from '../../domain/sensors/sensors-polled.event.ts'
import { toIso } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { RunPlan, SensorPlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import { type Actor, keysFound, type World } from './world.ts'

/** What should have become of a sensor. */
export interface ExpectedSensor {
  readonly id: string
  cursor: string | null
  version: number
  /** Polls that moved the version, in order; those that failed among them. */
  readonly moved: string[]
  readonly stale: string[]
  /** Messages with the evaluation that counts, or null while none does. */
  readonly messages: Map<string, string | null>
  dead: number
}

type Outcome = 'ok' | 'error'

/** A sensor: polls that race, messages that are delivered again, fail and are replayed, resets. An evaluation and its requests are one segment. */
export function* sensorLife(world: World, index: number, plan: SensorPlan): Actor {
  const id = `sensor-${index}`
  const sensor: ExpectedSensor = { id, cursor: null, version: 0, moved: [], stale: [], messages: new Map(), dead: 0 }
  world.sensors.push(sensor)
  let begun = 0

  const poll = (
    outcome: Outcome,
    runs: readonly RunPlan[],
    seen: { cursor: string | null; version: number } = sensor,
    moves = true,
  ): Envelope[] => {
    const source = { source: 'poll', state_version: seen.version } as const
    const [began, cursor_before] = [`b${begun++}`, seen.cursor]
    const evalId = evalIdOf(id, source, began)
    const isFresh = seen.version === sensor.version && seen.cursor === sensor.cursor
    const after = outcome === 'ok' && moves ? `${id}@${began}` : null
    if (!isFresh) sensor.stale.push(evalId)
    else if (moves || outcome === 'error') {
      sensor.moved.push(evalId)
      sensor.version += 1
      sensor.cursor = after ?? sensor.cursor
    }
    // A poll that moves nothing finds nothing either, or it would move.
    const keys = moves ? keysFound(world) : {}
    const facts = { ...keys, begun: began, cursor_before, cursor_after: after }
    return evaluation(world, { id, source, evalId, outcome, counts: isFresh && outcome === 'ok' }, runs, facts)
  }

  const push = (
    message: string,
    attempt: number,
    outcome: Outcome,
    runs: readonly RunPlan[],
    facts: { body_hash?: string; max_tries?: number } = {},
  ): Envelope[] => {
    const began = `b${begun++}`
    const source = { source: 'push', message_id: message, try: attempt, body_hash: 'body', body_size: 4, ...facts } as const
    const evalId = evalIdOf(id, source, began)
    const counts = outcome === 'ok' && sensor.messages.get(message) == null
    if (counts) sensor.messages.set(message, evalId)
    else if (!sensor.messages.has(message)) sensor.messages.set(message, null)
    return evaluation(world, { id, source, evalId, outcome, counts }, runs, { ...keysFound(world), begun: began })
  }

  for (const [step, { kind, runs }] of plan.steps.entries()) {
    const request = { sensor_id: id, request_id: `r${step}`, changed_by: 'ada' }
    const message = `message ${step}`
    switch (kind) {
      case 'poll':
        yield poll('ok', runs)
        break
      case 'nothing new':
        yield poll('ok', [], sensor, false)
        break
      case 'error':
        yield poll('error', [])
        break
      case 'polled':
        yield polled(world, step, sensor)
        break
      case 'race': {
        // Both began where the sensor stands now; the second to be written lost, and its requests with it.
        const seen = { cursor: sensor.cursor, version: sensor.version }
        yield poll(runs.length > 1 ? 'ok' : 'error', runs.slice(1), seen)
        yield poll('ok', runs, seen)
        break
      }
      case 'wrong cursor':
        yield poll('ok', runs, { cursor: 'elsewhere', version: sensor.version })
        break
      case 'push':
        yield push(message, 1, 'ok', runs)
        break
      case 'push that fails first':
        yield push(message, 1, 'error', [], { body_hash: 'broken' })
        yield push(message, 2, 'ok', runs)
        break
      case 'dead letter':
        yield push(message, 1, 'error', [], { max_tries: 2 })
        // Counted before the fact is told: the history may end with it.
        sensor.dead += 1
        yield push(message, 2, 'error', [], { max_tries: 2 })
        if (world.roll(3) === 1) break
        sensor.dead -= 1
        yield world.write(SensorMessageReplayed, {
          sensor_id: id,
          message_id: message,
          request_id: 'again',
          requested_by: 'ada',
        })
        yield push(message, 3, 'error', [], { max_tries: 2 })
        yield push(message, 4, 'ok', runs, { max_tries: 2 })
        break
      case 'two at once':
        // Two servers were told of the message, and neither knew of the other.
        yield push(message, 1, world.roll(2) === 0 ? 'ok' : 'error', runs.slice(1))
        yield push(message, 1, 'ok', runs)
        break
      case 'other body':
        yield push(message, 1, 'ok', runs)
        yield world.write(SensorMessageConflicted, { sensor_id: id, message_id: message, body_hash: 'other', body_size: 5 })
        yield push(message, 2, 'ok', runs, { body_hash: 'third' })
        break
      case 'reset':
        sensor.cursor = step % 2 === 0 ? null : `reset-${step}`
        sensor.version += 1
        yield world.write(SensorCursorReset, { ...request, cursor: sensor.cursor })
        break
      case 'paused':
        yield world.write(SensorPaused, { ...request, reason: 'too loud' })
        break
      case 'resumed':
        yield world.write(SensorResumed, request)
        break
      case 'defined':
      case 'declared again':
        yield world.write(SensorDefined, {
          sensor_id: id,
          sensor_name: kind === 'defined' ? `s${step}` : 's',
          config: { type: 'poll', every_ms: 60_000 },
          definition_hash: kind === 'defined' ? `hash-${step}` : 'hash',
          request_id: `r${step}`,
        })
        break
      case 'removed':
        yield world.write(SensorRemoved, { sensor_id: id, request_id: `r${step}`, removed_by: 'ada' })
        break
    }
  }
}

/** Polls that found nothing, recorded together, some of a version that has passed. */
function polled(world: World, step: number, { id: sensor_id, version }: ExpectedSensor): Envelope[] {
  const span = { poll_count: 2, first: toIso(world.now), last: toIso(world.now + 60_000) }
  const past = { sensor_id, state_version: Math.max(0, version - 1), ...span, poll_count: 40 }
  return world.write(SensorsPolled, {
    record_id: `polled-${sensor_id}-${step}`,
    polled: [...(version > 0 ? [past] : []), { sensor_id, state_version: version, ...span }],
  })
}

interface Evaluated {
  readonly id: string
  readonly source: EvaluationSource
  readonly evalId: string
  readonly outcome: Outcome
  readonly counts: boolean
}

/** One segment: the evaluation and the runs it asks for. Those of an evaluation that does not count must come to nothing. */
export function evaluation(
  world: World,
  { id, source, evalId, outcome, counts }: Evaluated,
  plans: readonly RunPlan[],
  facts: Record<string, unknown>,
): Envelope[] {
  const writer = world.writer()
  const asker = { type: 'sensor', sensor_id: id, eval_id: evalId } as const
  const runs = plans.map((plan, index) => {
    // Keys of their own, so that the runs of one evaluation cannot be taken for those of another.
    const key = runKeyOfEvaluation(id, source, index, `${evalId}/${index}`)
    return new SimulatedRun(world, plan, key, asker)
  })
  for (const run of runs) {
    if (counts) {
      world.runs.push(run)
      world.spawn(runLife(run))
    } else {
      world.refused.add(run.runKey)
    }
  }
  // The sensor saw something again that it had seen before, and asks for the same run, or with the same key for another.
  const before = world.runs.find((run) => run.source.type === 'sensor' && run.source.sensor_id === id && !runs.includes(run))
  const assets = outcome === 'ok' && plans.length > 0 ? [before?.assets, ['asset8']][world.roll(3)] : undefined
  const again = before !== undefined && assets !== undefined ? [before.runKey] : []
  const ofAgain = again.length > 0 ? [requestFingerprint({ asset_selection: assets ?? [] })] : []
  const run_keys = outcome === 'ok' ? [...runs.map((run) => run.runKey), ...again] : []
  const status = outcome === 'error' ? 'error' : run_keys.length > 0 ? 'triggered' : 'no_new_data'
  const evaluated = writer.write(SensorEvaluated, {
    sensor_id: id,
    trigger_source: source,
    status,
    run_keys,
    run_fingerprints: outcome === 'ok' ? [...runs.map((run) => run.fingerprint), ...ofAgain] : [],
    ...(outcome === 'error' && { error: 'no route to host' }),
    ...facts,
  })
  const requests = runs.map((run) => run.request(writer))
  if (before !== undefined && assets !== undefined) requests.push(before.request(writer, assets, asker))
  return [evaluated, ...requests]
}
