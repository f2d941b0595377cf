import type { Deliveries, Delivery, DeliveryAnswer, UnrecordedPolls } from '../../../contract/delivery.ts'
import type { EvaluationReport, SensorMessage } from '../../../contract/evaluation.ts'
import { automationState } from '../../../domain/automation/automation-state.table.ts'
import { standstillOf, type WatchedSensor } from '../../../domain/sensors/evaluation/standstill.ts'
import { type SensorRow, sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { sensorState } from '../../../domain/sensors/sensor-state.table.ts'
import type { Reactor } from '../../../engine/loop/loop.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { id } from '../../../model/envelope.ts'
import { reactor } from '../reactor.ts'
import { Evaluations, type EvaluationsOptions, PROJECT_NOT_LOADED } from './evaluations.ts'
import { Happenings } from './happenings.ts'
import { MessageDeliveries } from './message-deliveries.ts'
import { type Polled, Polls, type PollsOptions } from './polls.ts'

export interface SensorHubOptions extends EvaluationsOptions, Pick<PollsOptions, 'durable' | 'checkLeads' | 'onTrouble'> {
  /** False: nothing is polled, and messages are refused. */
  readonly automation: boolean
}

/** Short, because whatever stops a server waits for its end, and only a count is lost. */
const MAX_LAST_NOTES_MS = 400

type Standstill = Extract<DeliveryAnswer, { kind: 'standstill' }>

/** Evaluates the sensors of a workspace in the process that leads: messages when they are delivered, polls when they are due. */
export class SensorHub implements Deliveries {
  readonly #options: SensorHubOptions
  readonly #evaluations: Evaluations
  readonly #messages: MessageDeliveries
  readonly #polls: Polls
  readonly #happenings: Happenings
  #isProjectKnown = false
  #isDraining = false

  constructor(options: SensorHubOptions) {
    this.#options = options
    this.#evaluations = new Evaluations(options)
    this.#messages = new MessageDeliveries({ ...options, evaluations: this.#evaluations })
    this.#polls = new Polls({ ...options, evaluations: this.#evaluations })
    this.#happenings = new Happenings({
      ...options,
      rows: () => options.known.rows(),
      deliver: (delivery) => this.deliver(delivery),
      mayDeliver: () => options.automation && this.#isProjectKnown,
    })
  }

  get reactors(): readonly Reactor[] {
    return [
      reactor(sensorDefinitions, ({ sensor_id }) => this.#polls.changed(sensor_id)),
      reactor(sensorState, ({ sensor_id }) => this.#polls.changed(sensor_id)),
      reactor(automationState, () => this.#polls.changedAll()),
      ...this.#happenings.reactors,
    ]
  }

  /** Call when the project is loaded and on record: from now on its sensors are evaluated. */
  projectKnown(): void {
    this.#isProjectKnown = true
    if (!this.#options.automation) return
    this.#polls.start()
    this.#polls.mended()
    this.#happenings.nudge()
  }

  async deliver(delivery: Delivery): Promise<DeliveryAnswer> {
    const watched = this.#evaluations.watched(delivery.sensor_id)
    const standstill = this.#standstillOf(watched)
    if (standstill !== undefined) return standstill
    const { definition } = watched
    takesMessages(definition)
    checkMessageId(delivery.message.id)
    this.#checkProject()
    try {
      await this.#options.checkLeads()
      return await this.#messages.deliver(definition, delivery)
    } catch (error) {
      // The sender asks nobody else: it delivers again, to whoever leads then.
      throw isServoError(error, 'conflict') ? notNow(error) : error
    }
  }

  async dryRun(sensorId: string, message?: SensorMessage): Promise<EvaluationReport> {
    const { definition, state } = this.#evaluations.watched(sensorId)
    this.#checkProject()
    if (definition.config.type !== 'poll') {
      if (message === undefined) throw needsMessage(definition)
      return await this.#messages.dryRun(definition, message)
    }
    if (message !== undefined) throw takesNoMessages(definition)
    const [state_version, cursor] = [state?.state_version ?? 0, state?.cursor ?? null]
    const { sensor_name: sensor, timeout_ms } = definition
    const begun = this.#options.mintId()
    const evaluated = await this.#evaluations.evaluate({ evaluation_id: begun, timeout_ms, of: 'poll', sensor, cursor })
    return await this.#evaluations.checked({
      ...{ definition, begun, ...evaluated },
      source: { source: 'poll', state_version, cursor },
    })
  }

  async poll(sensorId: string, requestedBy: string): Promise<Polled> {
    const watched = this.#evaluations.watched(sensorId)
    const { config, sensor_name } = watched.definition
    if (config.type !== 'poll')
      throw new ServoError('invalid', 'not_a_poll', `${sensor_name} cannot be polled: it waits for messages`, {
        hint: 'Send it one: servo sensors send',
      })
    const standstill = this.#standstillOf(watched)
    if (standstill !== undefined) throw notEvaluated(sensor_name, standstill)
    this.#checkProject()
    return await this.#polls.poll(sensorId, requestedBy)
  }

  polledAt(sensorId: string): number | undefined {
    return this.#polls.polledAt(sensorId)
  }

  unrecordedPolls(sensorId: string): UnrecordedPolls | undefined {
    return this.#polls.unrecorded(sensorId)
  }

  async recordPolls(sensorId: string): Promise<void> {
    const notes = this.#polls.takeNotes(sensorId)
    if (notes.length > 0) await this.#options.submit(notes)
  }

  /** Evaluations that are under way. */
  get running(): number {
    return this.#evaluations.running
  }

  /** Begins nothing more. What is being evaluated still counts. */
  drain(): void {
    this.#isDraining = true
    this.#polls.stop()
    this.#happenings.close()
  }

  /** Begins nothing more. What is being evaluated counts for nothing, and comes again. */
  stop(): void {
    this.#polls.stop()
    this.#happenings.close()
    this.#evaluations.close()
  }

  /** Stops, and records the polls that found nothing. */
  async close(): Promise<void> {
    this.stop()
    const notes = this.#polls.takeNotes()
    if (notes.length === 0) return
    const { clock, submit } = this.#options
    const enough = new Promise<void>((resolve) => clock.after(MAX_LAST_NOTES_MS, resolve))
    await Promise.race([submit(notes).catch(() => undefined), enough])
  }

  #standstillOf(watched: WatchedSensor): Standstill | undefined {
    const standstill = standstillOf(watched)
    if (standstill !== undefined) {
      const { code, by, reason } = standstill
      return { kind: 'standstill', code, by, reason }
    }
    return this.#options.automation ? undefined : { kind: 'standstill', code: 'automation_off', by: null, reason: null }
  }

  #checkProject(): void {
    if (this.#isDraining) throw new ServoError('unavailable', 'closed', 'this server is shutting down', { hint: 'Try again.' })
    if (this.#isProjectKnown) return
    throw new ServoError('unavailable', PROJECT_NOT_LOADED, 'the project is not loaded, so no sensor can be evaluated', {
      hint: 'The server log says what is wrong with the project. Fix it and save, then try again.',
      facts: { retry_after_sec: 60 },
    })
  }
}

function takesMessages(definition: Readonly<SensorRow>): void {
  if (definition.config.type === 'poll') throw takesNoMessages(definition)
}

const takesNoMessages = ({ sensor_name }: Readonly<SensorRow>): ServoError =>
  new ServoError('invalid', 'takes_no_messages', `${sensor_name} takes no messages: it polls`, {
    hint: 'Request a poll instead.',
  })

const notNow = (cause: ServoError): ServoError =>
  new ServoError('unavailable', cause.code, cause.message, { hint: 'Deliver it again.', cause })

const needsMessage = ({ sensor_name }: Readonly<SensorRow>): ServoError =>
  new ServoError('invalid', 'message_missing', `${sensor_name} needs a message to evaluate`, { hint: 'Send one with --data.' })

function checkMessageId(messageId: string): void {
  const parsed = id.safeParse(messageId)
  if (parsed.success) return
  throw new ServoError('invalid', 'bad_message_id', `the id of the message ${parsed.error.issues[0]?.message}`, {
    hint: 'Give each message a short id, in one line.',
  })
}

function notEvaluated(sensor: string, { code, by, reason }: Standstill): ServoError {
  const why = { removed: 'removed', disabled: 'disabled', paused: 'paused', automation_paused: 'paused', automation_off: 'off' }
  const what = code === 'automation_paused' || code === 'automation_off' ? 'all automation' : sensor
  const who = `${by === null ? '' : ` by ${by}`}${reason === null ? '' : `: ${reason}`}`
  return new ServoError('conflict', code === 'paused' ? 'sensor_paused' : code, `${what} is ${why[code]}${who}`, {
    hint: code === 'paused' ? `servo sensors resume ${sensor}` : 'Nothing was evaluated. A dry run is possible.',
  })
}
