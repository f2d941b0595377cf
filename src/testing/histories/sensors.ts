import { SensorCursorReset } from '../../domain/sensors/sensor-cursor-reset.event.ts'
import { SensorDefined } from '../../domain/sensors/sensor-defined.event.ts'
import { SensorEvaluated } from '../../domain/sensors/sensor-evaluated.event.ts'
import { SensorPaused } from '../../domain/sensors/sensor-paused.event.ts'
import { SensorResumed } from '../../domain/sensors/sensor-resumed.event.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { RunPlan, SensorPlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import { type Actor, keysFound, type World } from './world.ts'

/** What should have become of a sensor. */
export interface ExpectedSensor {
  readonly id: string
  cursor: string | null
  version: number
  /** Polls that moved the cursor or kept it, in order. */
  readonly accepted: string[]
  readonly stale: string[]
}

/** A sensor: polls that race, pushes that are delivered again, resets. An evaluation and its requests are one segment. */
export function* sensorLife(world: World, index: number, plan: SensorPlan): Actor {
  const sensor: ExpectedSensor = { id: `sensor-${index}`, cursor: null, version: 0, accepted: [], stale: [] }
  world.sensors.push(sensor)
  let polls = 0

  const poll = (
    status: string,
    runs: readonly RunPlan[],
    seen = { cursor: sensor.cursor, version: sensor.version },
  ): Envelope[] => {
    const number = polls++
    const evalId = `eval-${sensor.id}-${number}`
    const fresh = seen.version === sensor.version && seen.cursor === sensor.cursor
    const after = `${sensor.id}@${number}`
    ;(fresh ? sensor.accepted : sensor.stale).push(evalId)
    if (fresh) sensor.version += 1
    // An evaluation without news names no new cursor and keeps the old one.
    if (fresh && status === 'triggered') sensor.cursor = after
    return evaluation(world, sensor.id, evalId, runs, fresh, {
      trigger_source: { source: 'poll', poll_epoch: 1_736_935_200 + number },
      cursor_before: seen.cursor,
      ...(status === 'triggered' && { cursor_after: after }),
      expected_state_version: seen.version,
      status,
      ...(status === 'error' && { error: 'no route to host' }),
    })
  }

  for (const [step, { kind, runs }] of plan.steps.entries()) {
    const request = { sensor_id: sensor.id, request_id: `r${step}`, changed_by: 'ada' }
    switch (kind) {
      case 'poll':
        yield poll('triggered', runs)
        break
      case 'nothing new':
        yield poll('no_new_data', [])
        break
      case 'error':
        yield poll('error', [])
        break
      case 'race': {
        // Both began where the sensor stands now; the second to be written lost, and its requests with it.
        const seen = { cursor: sensor.cursor, version: sensor.version }
        // If the first found nothing, the cursor is still the same and only the version shows that another poll was faster.
        yield poll(runs.length > 1 ? 'triggered' : 'no_new_data', runs.slice(1), seen)
        yield poll('triggered', runs, seen)
        break
      }
      case 'wrong cursor':
        yield poll('triggered', runs, { cursor: 'elsewhere', version: sensor.version })
        break
      case 'push': {
        const id = `eval-${sensor.id}-message-${step}`
        const source = { trigger_source: { source: 'push', message_id: `message-${step}` }, status: 'triggered' }
        yield evaluation(world, sensor.id, id, runs, true, source)
        // The message is delivered again; by then it has no news.
        if (world.roll(3) === 1) yield evaluation(world, sensor.id, id, [], true, source)
        break
      }
      case 'reset':
        sensor.cursor = step % 2 === 0 ? null : `reset-${step}`
        sensor.version += 1
        yield world.write(SensorCursorReset, { ...request, cursor: sensor.cursor })
        break
      case 'paused':
        yield world.write(SensorPaused, request)
        break
      case 'resumed':
        yield world.write(SensorResumed, request)
        break
      case 'defined':
        yield world.write(SensorDefined, {
          sensor_id: sensor.id,
          sensor_name: `s${step}`,
          sensor_type: 'poll',
          definition_hash: `hash-${step}`,
        })
        break
    }
  }
}

/** One segment: the evaluation and the runs it asks for. Those of a stale evaluation must come to nothing. */
function evaluation(
  world: World,
  sensorId: string,
  evalId: string,
  plans: readonly RunPlan[],
  counts: boolean,
  facts: Record<string, unknown>,
): Envelope[] {
  const writer = world.writer()
  const runs = plans.map(
    (plan, index) =>
      new SimulatedRun(world, plan, `sensor:${evalId}:${index}`, { type: 'sensor', sensor_id: sensorId, eval_id: evalId }),
  )
  for (const run of runs) {
    if (counts) {
      world.runs.push(run)
      world.spawn(runLife(run))
    } else {
      world.refused.add(run.runKey)
    }
  }
  const evaluated = writer.write(SensorEvaluated, {
    sensor_id: sensorId,
    eval_id: evalId,
    run_keys: runs.map((run) => run.runKey),
    ...keysFound(world),
    ...facts,
  })
  const requests = runs.map((run) => run.request(writer))
  // The sensor saw something again that it had seen before, and asks for the same run, or with the same key for another.
  const before = world.runs.find(
    (run) => run.source.type === 'sensor' && run.source.sensor_id === sensorId && !runs.includes(run),
  )
  const assets = [before?.assets, ['asset8']][world.roll(3)]
  if (before !== undefined && assets !== undefined)
    requests.push(before.request(writer, assets, { type: 'sensor', sensor_id: sensorId, eval_id: evalId }))
  return [evaluated, ...requests]
}
