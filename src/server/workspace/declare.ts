import type { ProjectManifest } from '../../contract/project-manifest.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { AssetsDefined } from '../../domain/assets/assets-defined.event.ts'
import { assetsDefined } from '../../domain/assets/definitions.ts'
import { AssetGraph } from '../../domain/assets/graph.ts'
import { pools } from '../../domain/assets/pools.table.ts'
import { orchestration } from '../../domain/index.ts'
import { declaredSchedules } from '../../domain/schedules/declared-schedules.ts'
import { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { declaredSensors } from '../../domain/sensors/declared-sensors.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { EventFold } from '../../engine/fold/event-fold.ts'
import type { State } from '../../engine/fold/state.ts'
import { mintEvents, sizeLimits } from '../../engine/ledger/mint.ts'
import { newEvent } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Components } from '../components.ts'

/** The declarations of a project that are not on record yet, in parts that fit into events; none when nothing changed. */
export function declaredParts(rows: Rows, manifest: ProjectManifest, now: number, mintId: () => string) {
  return assetsDefined({
    manifest,
    known: rows.hot(assetDefinitions).all(),
    knownPools: rows.hot(pools).all(),
    now,
    mintId,
  })
}

/** Nothing is declared where nothing ticks. */
export const NO_AUTOMATION = { schedules: [], sensors: [] }

/** The events with which schedules and sensors of a project are declared, as far as they are new. */
export function declaredAutomation(state: Rows, manifest: ProjectManifest, mintId: () => string) {
  const schedules = { declared: manifest.schedules, known: state.hot(scheduleDefinitions).all(), mintId }
  const graph = new AssetGraph(manifest.assets)
  const sensors = { declared: manifest.sensors, known: state.hot(sensorDefinitions).all(), mintId, graph }
  return { schedules: declaredSchedules(schedules), sensors: declaredSensors(sensors) }
}

/** Folds the declarations of a project into a state that is only read and never published. */
export function declare({ scope, clock, ulid }: Components, state: State, manifest: ProjectManifest): void {
  const events = declaredParts(state, manifest, clock.now(), ulid).map((part) => newEvent(AssetsDefined, part))
  if (events.length === 0) return
  const eventFold = new EventFold(orchestration, state)
  for (const event of mintEvents({ scope, clock, ulid, source: 'servo/cli' }, sizeLimits, events).events) eventFold.fold(event)
}
