import { assetDefinition } from '../contract/project-manifest.ts'
import type { SensorDefinitionInput } from '../contract/sensor.ts'
import { graphOf } from '../domain/assets/definitions.ts'
import { GraphPartitions } from '../domain/assets/graph-partitions.ts'
import type { GraphAtTick } from '../domain/schedules/deciding/work-of-tick.ts'
import { type EvaluationToRecord, evaluationEvents } from '../domain/sensors/evaluation/evaluation-events.ts'
import { SensorDefined } from '../domain/sensors/sensor-defined.event.ts'
import { type SensorRow, sensorDefinitions } from '../domain/sensors/sensor-definitions.table.ts'
import { type SensorMessageRow, sensorMessages } from '../domain/sensors/sensor-messages.table.ts'
import { type SensorStateRow, sensorState } from '../domain/sensors/sensor-state.table.ts'
import { assert } from '../lib/assert.ts'
import { sha256 } from '../lib/hash.ts'
import { canonicalJson } from '../lib/json.ts'
import type { Columns } from '../model/column.ts'
import type { NewEvent, Verdict } from '../model/event.ts'
import { newEvent } from '../model/event.ts'
import type { RowOf, Table } from '../model/table.ts'
import { Bench } from './histories/fold.ts'
import { SimulatedWriter } from './histories/writers.ts'
import { simulatedRequest } from './schedule-simulation.ts'

/** The assets of a project, by key with their partitions. */
function simulatedGraph(assets: Readonly<Record<string, object | null>>, nowMs: number): GraphAtTick {
  const definitions = Object.entries(assets).map(([asset_key, partitions]) =>
    assetDefinition.parse({ asset_key, kind: 'asset', partitions }),
  )
  const { graph, mappings } = graphOf(definitions.map((definition) => ({ definition, removed: false })))
  return { graph, partitions: new GraphPartitions(mappings, { nowMs, dynamicKeys: () => [] }) }
}

/** A sensor, what is on record of it, and a clock: what a server that evaluates it would read and write. */
export class SensorBench {
  readonly bench = new Bench()
  now = Date.UTC(2025, 0, 15, 10)
  readonly id: string
  readonly #writer = new SimulatedWriter(1, 0, () => this.now)
  readonly #graph: GraphAtTick

  constructor(id = 'inbox', assets: Readonly<Record<string, object | null>> = { orders: null }) {
    this.id = id
    this.#graph = simulatedGraph(assets, this.now)
  }

  define(definition: Omit<SensorDefinitionInput, 'name'>, name = 'inbox'): Verdict {
    const definition_hash = sha256(canonicalJson({ ...definition, name }))
    const facts = { sensor_id: this.id, sensor_name: name, definition_hash, request_id: `${this.now}` }
    return this.write([newEvent(SensorDefined, { ...definition, ...facts })])
  }

  get definition(): Readonly<SensorRow> {
    const row = this.bench.state.hot(sensorDefinitions).get(this.id)
    assert(row !== undefined, 'the sensor was declared')
    return row
  }

  get state(): Readonly<SensorStateRow> | undefined {
    return this.bench.state.hot(sensorState).get(this.id)
  }

  message(id: string): SensorMessageRow | undefined {
    return this.rows(sensorMessages).find((row) => row.message_id === id)
  }

  rows<C extends Columns>(table: Table<C>): RowOf<C>[] {
    // The bench keeps the rows of a table under its name.
    return (this.bench.rows()[table.name] ?? []) as RowOf<C>[]
  }

  /** What a server would append for this evaluation. */
  eventsOf(evaluation: Pick<EvaluationToRecord, 'source' | 'begun' | 'result' | 'runOf'>): NewEvent[] {
    return evaluationEvents({ definition: this.definition, at: this.#graph, requestRun: simulatedRequest, ...evaluation })
  }

  /** Appends events as one segment; returns what became of the first. */
  write(events: readonly NewEvent[]): Verdict {
    let first: Verdict | undefined
    this.now += 1
    const payloads = events.map(({ definition, payload }) => {
      const parsed = definition.parse(payload)
      assert(parsed.success, `${definition.type}: ${parsed.success ? '' : parsed.error.message}`)
      return this.#writer.write(definition, parsed.data)
    })
    this.bench.fold(payloads, (_, verdict) => {
      first ??= verdict
    })
    assert(first !== undefined, 'a segment has an event')
    return first
  }

  /** The process ends and another begins with what was published. */
  restart(): void {
    this.bench.seal()
    this.bench.restart()
  }
}
