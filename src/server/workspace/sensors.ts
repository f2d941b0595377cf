import type { RequestBody, SwitchBody } from '../../api/automation/schedule-contract.ts'
import type {
  AcceptedEvaluation,
  AcceptedReplay,
  AcceptedSensor,
  DryEvaluation,
  EvaluateBody,
  NewSensorBody,
  ReplayBody,
  ResetCursorBody,
  SensorChangesBody,
  SensorsApi,
} from '../../api/automation/sensor-contract.ts'
import type { Deliveries } from '../../contract/delivery.ts'
import { type SensorDefinition, type SensorSource, sensorDefinition } from '../../contract/sensor.ts'
import { sensorDefined } from '../../domain/sensors/declared-sensors.ts'
import { SensorCursorReset } from '../../domain/sensors/sensor-cursor-reset.event.ts'
import { SensorDefined } from '../../domain/sensors/sensor-defined.event.ts'
import { type SensorRow, sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { SensorPaused } from '../../domain/sensors/sensor-paused.event.ts'
import { SensorRemoved } from '../../domain/sensors/sensor-removed.event.ts'
import { SensorResumed } from '../../domain/sensors/sensor-resumed.event.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { Mutex } from '../../lib/mutex.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { AskedEvaluations, acceptedSensor } from './asked-evaluations.ts'
import { checkSelection } from './check-selection.ts'
import type { Knowledge } from './knowledge.ts'
import { recordChange, recordedBefore } from './recorded-change.ts'
import type { Senders } from './senders.ts'
import { SensorReader } from './sensor-reader.ts'
import { checkStateVersion } from './state-version.ts'

export interface SensorsOptions {
  readonly outage?: (() => string | undefined) | undefined
  /** Absent where nothing is evaluated: in a command, or with automation off. */
  readonly deliveries?: Deliveries | undefined
  /** Absent where no sender is let in. */
  readonly senders?: Senders | undefined
  readonly isServer: boolean
}

interface Change {
  /** Of a request that has an id, the first answer counts. */
  readonly request_id: string | undefined
  readonly eventOf: (request: string) => NewEvent
  /** Refuses the change, or says that there is nothing to change. */
  readonly check: () => string | undefined
  readonly message: string
  /** What has to be on record before the change. */
  readonly before?: () => Promise<void> | undefined
}

/** Everything that can be asked of sensors, as routes and commands ask it. */
export class Sensors extends SensorReader implements SensorsApi {
  readonly #known: Knowledge
  readonly #evaluations: AskedEvaluations
  readonly #deliveries: Deliveries | undefined
  /** Of two changes at the same time, the second is checked against what the first has made. */
  readonly #turns = new Mutex()

  constructor(known: Knowledge, options: SensorsOptions) {
    super(known, options)
    this.#known = known
    this.#deliveries = options.deliveries
    this.#evaluations = new AskedEvaluations(known, this, options)
  }

  create({ request_id, ...body }: NewSensorBody, user: string): Promise<AcceptedSensor> {
    const definition = withoutCode(body)
    const sensor_id = request_id === undefined ? this.#known.mintId() : idOfRequest(request_id)
    const defined = (request: string) => checked(this.#defined(definition, sensor_id, request), user)
    return this.#change(
      { sensor_id, sensor_name: definition.name },
      {
        request_id,
        eventOf: defined,
        check: () => {
          this.#refuseReused(sensor_id)
          this.#checkFits(definition, sensor_id)
          return undefined
        },
        message: 'sensor made',
      },
    )
  }

  #defined(definition: SensorDefinition, sensor_id: string, request_id: string): NewEvent {
    return sensorDefined(definition, { sensor_id, origin: 'api', request_id, graph: this.#known.graph.get().graph })
  }

  async update(
    idOrName: string,
    { request_id, ...changes }: SensorChangesBody,
    user: string,
    expected?: number,
  ): Promise<AcceptedSensor> {
    const row = this.find(idOrName)
    const { sensor_id } = row
    checkOwnedByApi(row)
    const kept = definitionOf(row)
    const definition = withoutCode({
      ...kept,
      name: changes.name ?? kept.name,
      description: changes.description === undefined ? kept.description : changes.description,
      config: changes.config ?? kept.config,
      asset_selection: changes.asset_selection ?? kept.asset_selection,
      max_tries: changes.max_tries ?? kept.max_tries,
      enabled: changes.enabled ?? kept.enabled,
    })
    return await this.#change(
      { sensor_id, sensor_name: definition.name },
      {
        request_id,
        eventOf: (request) => checked(this.#defined(definition, sensor_id, request), user),
        check: () => {
          this.#checkVersion(this.present(row, 'changed'), expected)
          this.#checkFits(definition, sensor_id)
          return undefined
        },
        message: 'sensor changed',
      },
    )
  }

  async remove(idOrName: string, { request_id }: RequestBody, user: string, expected?: number): Promise<AcceptedSensor> {
    const row = this.find(idOrName)
    const { sensor_id } = row
    checkOwnedByApi(row)
    return await this.#change(row, {
      request_id,
      eventOf: (request) => newEvent(SensorRemoved, { sensor_id, request_id: request, removed_by: user }, { actor: user }),
      check: () => {
        this.#checkVersion(this.present(row, 'removed'), expected)
        return undefined
      },
      message: 'sensor deleted',
    })
  }

  pause(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSensor> {
    return this.#switch(idOrName, 'PAUSED', { ...body, user, expected })
  }

  resume(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSensor> {
    return this.#switch(idOrName, 'ACTIVE', { ...body, user, expected })
  }

  async #switch(
    idOrName: string,
    status: 'ACTIVE' | 'PAUSED',
    asked: SwitchBody & { user: string; expected: number | undefined },
  ): Promise<AcceptedSensor> {
    const row = this.find(idOrName)
    const { user, reason = null, request_id } = asked
    const to = status === 'PAUSED' ? 'paused' : 'active'
    return await this.#change(row, {
      request_id,
      eventOf: (request) => {
        const change = { sensor_id: row.sensor_id, request_id: request, changed_by: user, reason }
        return newEvent(status === 'PAUSED' ? SensorPaused : SensorResumed, change, { actor: user })
      },
      check: () => {
        this.#checkVersion(this.present(row, to), asked.expected)
        // One in error is resumed too: then its errors are forgotten, and it is polled at once.
        return (this.stateOf(row)?.status ?? 'ACTIVE') === status ? `sensor was already ${to}` : undefined
      },
      message: `sensor ${status === 'PAUSED' ? 'paused' : 'resumed'}`,
    })
  }

  async resetCursor(idOrName: string, body: ResetCursorBody, user: string, expected?: number): Promise<AcceptedSensor> {
    const row = this.find(idOrName)
    const { sensor_id, sensor_name, config } = row
    const { reason = null, request_id } = body
    if (config.type !== 'poll')
      throw new ServoError('invalid', 'no_cursor', `${sensor_name} has no cursor: it is a sensor of type ${config.type}`, {
        hint: 'Only sensors that poll have a cursor.',
      })
    const cursor = checkedCursor(body.cursor)
    return await this.#change(row, {
      request_id,
      eventOf: (request) => {
        const reset = { sensor_id, request_id: request, changed_by: user, reason, cursor }
        return checked(newEvent(SensorCursorReset, reset), user)
      },
      check: () => {
        this.#checkVersion(this.present(row, 'reset'), expected)
        return undefined
      },
      before: () => this.#deliveries?.recordPolls?.(sensor_id),
      message: 'cursor reset',
    })
  }

  evaluate(idOrName: string, body: EvaluateBody, user: string): Promise<AcceptedEvaluation | DryEvaluation> {
    return this.#evaluations.evaluate(idOrName, body, user)
  }

  replay(idOrName: string, messageId: string, body: ReplayBody, user: string): Promise<AcceptedReplay> {
    return this.#evaluations.replay(idOrName, messageId, body, user)
  }

  #change(
    named: Pick<SensorRow, 'sensor_id' | 'sensor_name'>,
    { request_id, eventOf, check, message, before: prepare }: Change,
  ): Promise<AcceptedSensor> {
    return this.#turns.run(async () => {
      const request = request_id ?? this.#known.mintId()
      const event = eventOf(request)
      const before = request_id === undefined ? undefined : await recordedBefore(this.#known, event)
      if (before !== undefined) {
        this.#refuseOther(event, before.event_id)
        return acceptedSensor(named, request, message, before)
      }
      const already = check()
      if (already === undefined) await prepare?.()
      return already === undefined
        ? acceptedSensor(named, request, message, await recordChange(this.#known, event))
        : acceptedSensor(named, request, already, { event_id: null, at: this.#known.now() })
    })
  }

  /** Refuses another definition under the id of a request that made one, as long as that can be told. */
  #refuseOther(event: NewEvent, firstEventId: string): void {
    const payload = event.definition === SensorDefined ? SensorDefined.parse(event.payload) : undefined
    if (payload?.success !== true) return
    const row = this.#known.rows().hot(sensorDefinitions).get(payload.data.sensor_id)
    if (row?.row_version === firstEventId && row.definition_hash !== payload.data.definition_hash) throw reused()
  }

  /** The id follows from the request, whose key is forgotten after a while. */
  #refuseReused(sensorId: string): void {
    if (this.#known.rows().hot(sensorDefinitions).get(sensorId) !== undefined) throw reused()
  }

  #checkVersion(row: Readonly<SensorRow>, expected: number | undefined): void {
    checkStateVersion(row.sensor_name, { expected, actual: this.stateOf(row)?.state_version ?? 0 })
  }

  /** Refuses a definition whose name or path another sensor has, or that selects what there is not. */
  #checkFits({ name, config, asset_selection }: SensorDefinition, sensorId: string): void {
    const others = [...this.#known.rows().hot(sensorDefinitions).all()].filter(
      (row) => row.removed_at === null && row.sensor_id !== sensorId,
    )
    const namesake = others.find((row) => row.sensor_name === name)
    if (namesake !== undefined)
      throw new ServoError('conflict', 'sensor_exists', `sensor ${name} already exists`, {
        hint: namesake.origin === 'api' ? 'Update it, or choose another name.' : 'It is declared in the project code.',
      })
    const neighbour = others.find((row) => pathOf(row.config) !== undefined && pathOf(row.config) === pathOf(config))
    if (neighbour !== undefined)
      throw new ServoError('conflict', 'path_taken', `the path ${pathOf(config)} is already used by ${neighbour.sensor_name}`, {
        hint: 'Choose another path.',
      })
    const { graph } = this.#known.graph.get()
    checkSelection(graph, 'asset_selection', asset_selection)
    if ('assets' in config && config.assets != null) checkSelection(graph, 'config.assets', config.assets)
  }
}

function checkOwnedByApi(row: Readonly<SensorRow>): void {
  if (row.origin === 'api') return
  throw new ServoError('conflict', 'declared_in_code', `${row.sensor_name} is declared in the project code`, {
    hint: `Change it there${row.file === null ? '' : `: ${row.file}${row.line === null ? '' : `:${row.line}`}`}, or pause it.`,
  })
}

const pathOf = (config: SensorSource): string | undefined => (config.type === 'webhook' ? config.path : undefined)

/** The same for the same request, so that a request that is repeated makes no second sensor. */
const idOfRequest = (requestId: string): string => `sensor_${sha256(`sensor made by request ${requestId}`).slice(0, 26)}`

const reused = (): ServoError =>
  new ServoError('conflict', 'idempotency_key_reused', 'another request used this id', {
    hint: 'Use a new id, or repeat the first request unchanged.',
  })

/** A definition of a sensor without code. One that names neither partition nor key in its messages is meant to have neither. */
function withoutCode(given: Omit<NewSensorBody, 'request_id'>): SensorDefinition {
  const config = given.config.type === 'poll' ? given.config : { ...given.config, fixed: given.config.fixed ?? {} }
  return sensorDefinition.parse({ ...given, config, has_code: false })
}

/** What the API can change of a sensor, as it is on record. */
function definitionOf(row: Readonly<SensorRow>): Omit<NewSensorBody, 'request_id'> {
  const { sensor_name: name, description, config, asset_selection, max_tries, enabled } = row
  return { name, description, config, asset_selection: [...asset_selection], max_tries, enabled }
}

/**
 * The next poll gets the cursor as the value of its JSON: text that is none would fail each poll from now on. Whether it fits the
 * schema, only the code knows. The JSON of null is no cursor, because a first poll gets undefined.
 */
function checkedCursor(cursor: string | null): string | null {
  if (cursor === null) return null
  try {
    return JSON.parse(cursor) === null ? null : cursor
  } catch {
    throw new ServoError('invalid', 'bad_cursor_text', 'cursor: must be JSON text', {
      hint: 'Put text into quotes of its own, such as "\\"2025-01-15\\"" in JSON and \'"2025-01-15"\' in a shell.',
      facts: { field: 'cursor' },
    })
  }
}

/** The event, with its maker. What is wrong with it is the caller's mistake, and is said of the field. */
function checked(event: NewEvent, actor: string): NewEvent {
  const parsed = event.definition.parse(event.payload)
  if (parsed.success) return { ...event, actor }
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  throw new ServoError('invalid', 'bad_sensor', `${field}: ${issue?.message}`, { facts: { field } })
}
