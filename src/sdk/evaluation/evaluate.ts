import { type EvaluationReport, type EvaluationRequest, type Happening, MAX_FIELD } from '../../contract/evaluation.ts'
import { isServoError, messageOf, ServoError } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type AnyAsset, isAsset } from '../any-asset.ts'
import { declarationOf, optionsOf } from '../declaration.ts'
import { type AnyResource, OpenResources } from '../declare/resource.ts'
import type { Sensor } from '../declare/sensor.ts'
import type { PollOptions, PushOptions, SensorSettings } from '../declare/sensor-options.ts'
import type { Schedule, ScheduleOptions } from '../declare/trigger.ts'
import { invalid } from '../invalid.ts'
import { valuesOfDimensions } from '../partitions/partition-key.ts'
import type { AnyPartitions } from '../partitions/partitions.ts'
import { fieldOf, issuesText, type StandardSchemaV1 } from '../standard-schema.ts'
import { requestsOf, shown } from './requests.ts'

/** The code of a project that is evaluated, by name. */
export interface EvaluatedProject {
  readonly sensors: ReadonlyMap<string, Sensor>
  readonly schedules: ReadonlyMap<string, Schedule>
}

export interface EvaluationContext {
  readonly signal: AbortSignal
  readonly environment?: Readonly<Record<string, string | undefined>>
  warn(text: string): void
}

type OfSensor = Exclude<EvaluationRequest, { of: 'condition' }>
type Handler = (event: unknown, context: object) => unknown

/** Runs the code of a sensor, or the condition of a schedule. Throws what the code throws. */
export async function evaluate(
  { sensors, schedules }: EvaluatedProject,
  request: EvaluationRequest,
  context: EvaluationContext,
): Promise<EvaluationReport> {
  if (request.of === 'condition') return judge(schedules.get(request.schedule), request, context)
  const sensor = sensors.get(request.sensor)
  if (sensor === undefined) throw gone('sensor', request.sensor)
  const { resources: declared } = optionsOf<SensorSettings<Record<string, AnyResource>>>(sensor)
  const resources = new OpenResources(context)
  try {
    const opened = await resources.open(declared)
    // An aborted signal does not fire again: code that listens from now on would wait for ever.
    context.signal.throwIfAborted()
    return await evaluateSensor(sensor, request, { resources: opened, signal: context.signal })
  } finally {
    await resources.close()
  }
}

async function evaluateSensor(sensor: Sensor, request: OfSensor, common: object): Promise<EvaluationReport> {
  const owner = `sensor ${sensor.name}`
  const kinds = { message: 'push_sensor', poll: 'poll_sensor' }
  const wanted = request.of === 'happening' ? happeningKind(request.happening) : kinds[request.of]
  if (declarationOf(sensor)?.kind !== wanted)
    throw invalid('other_sensor', `${owner} changed its kind`, 'Send the event to the right sensor.')
  if (request.of === 'poll') return poll(sensor.name, optionsOf<PollOptions<unknown, unknown>>(sensor), request.cursor, common)
  if (request.of === 'happening') {
    const { on, watch } = optionsOf<{ on: Handler; watch?: unknown }>(sensor)
    const event = eventOf(request.happening, watch)
    return requestsOf(owner, await on(event, { id: request.id, ...common }), ['runs', 'add', 'remove'])
  }
  const { id, data, attributes, published_at } = request.message
  const { source, on } = optionsOf<Pick<PushOptions<unknown, unknown>, 'source'> & { on: Handler }>(sensor)
  const parsed = await checkedMessage(source.schema, data)
  const publishedAt = published_at === null ? undefined : new Date(published_at)
  const returned = await on(withId(parsed, id), { id, attributes, publishedAt, ...common })
  return requestsOf(owner, returned, ['runs', 'add', 'remove'])
}

const UNFIT_MESSAGE = 'unfit_message'

/** As `checked`, with the field in the error: whoever sent the message is told. */
async function checkedMessage(schema: StandardSchemaV1, data: unknown): Promise<unknown> {
  const result = await schema['~standard'].validate(data)
  if (result.issues === undefined) return result.value
  const [first] = result.issues
  const field = first === undefined ? '' : fieldOf(first).slice(0, MAX_FIELD)
  const text = issuesText(result.issues)
  // The field stands at the beginning, and not once more.
  const why = field !== '' && text.startsWith(`${field}: `) ? text.slice(field.length + 2) : text
  const message = `${field === '' ? 'the message' : field} does not match the schema: ${why}`
  throw new ServoError('invalid', UNFIT_MESSAGE, message, { hint: FIT_HINT, facts: { field } })
}

/** The field by which a message did not fit, empty for the message as a whole; undefined if the error is another. */
export function unfitField(error: unknown): string | undefined {
  const field = isServoError(error) && error.code === UNFIT_MESSAGE ? error.facts['field'] : undefined
  return typeof field === 'string' ? field : undefined
}

const happeningKind = ({ type }: Happening): string => (type === 'run' ? 'run_sensor' : 'asset_sensor')

/** Only plain objects can take an id without becoming something else. */
function withId(event: unknown, id: string): unknown {
  const isPlain = isObject(event) && [Object.prototype, null].includes(Object.getPrototypeOf(event))
  return isPlain && !('id' in event) ? { ...event, id } : event
}

function eventOf(happening: Happening, watch: unknown): object {
  const { type, run_id: runId, at } = happening
  if (type === 'run') {
    const { state, asset_selection: assets, labels } = happening
    return { runId, state, assets, labels, at: new Date(at) }
  }
  const { asset_key: asset, partition_key } = happening
  const partition = partition_key === null ? undefined : keyOf(watched(asset, watch), partition_key)
  const event = { type, asset, partition, runId: runId ?? undefined, at: new Date(at) }
  return type === 'check_failed' ? { ...event, checks: happening.checks } : event
}

const watched = (key: string, watch: unknown): AnyAsset | undefined =>
  (Array.isArray(watch) ? watch : [watch]).filter(isAsset).find((asset) => asset.key === key)

/** As code has it: of several dimensions, their values. */
function keyOf(asset: AnyAsset | undefined, text: string): unknown {
  const partitions = asset && optionsOf<{ partitions?: AnyPartitions }>(asset).partitions
  return partitions?.data.type === 'multi' ? valuesOfDimensions(text) : text
}

async function poll(
  name: string,
  { cursor: schema, poll: code }: PollOptions<unknown, unknown>,
  text: string | null,
  common: object,
): Promise<EvaluationReport> {
  const owner = `sensor ${name}`
  const cursor = text === null ? undefined : await readCursor(name, schema, text)
  const returned: unknown = await code({ cursor, ...common } as Parameters<typeof code>[0])
  if (!isObject(returned) || Array.isArray(returned))
    throw invalid('bad_result', `${owner} cannot return ${shown(returned)}`, 'Return { cursor, runs: [ … ] }, or { runs: [] }.')
  const requests = requestsOf(owner, returned, ['cursor', 'runs', 'add', 'remove'])
  const next = returned['cursor']
  return next === undefined ? requests : { ...requests, cursor: await writtenCursor(owner, schema, next) }
}

async function readCursor(name: string, schema: StandardSchemaV1, text: string): Promise<unknown> {
  const owner = `sensor ${name}`
  const hint = `Change the schema, or reset the cursor: servo sensors reset-cursor ${name}`
  try {
    return await checked(
      `the cursor of ${owner}, ${text.slice(0, 200)}, does not match its schema`,
      schema,
      JSON.parse(text),
      hint,
    )
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw invalid('bad_cursor', `the cursor of ${owner} is not JSON: ${text.slice(0, 200)}`, hint)
  }
}

/** The next poll reads it through the schema, so what the schema refuses is refused now. */
async function writtenCursor(owner: string, schema: StandardSchemaV1, cursor: unknown): Promise<string> {
  let text: string
  try {
    text = canonicalJson(cursor)
  } catch (error) {
    throw invalid(
      'bad_cursor',
      `the cursor that ${owner} returned cannot be stored: ${messageOf(error)}`,
      'Return null, booleans, finite numbers, text, lists and plain objects.',
    )
  }
  await checked(`the cursor that ${owner} returned does not match its schema`, schema, JSON.parse(text))
  return text
}

const FIT_HINT = 'Fix the value, or change the schema if the value is right.'

async function checked(problem: string, schema: StandardSchemaV1, value: unknown, hint = FIT_HINT): Promise<unknown> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return result.value
  throw invalid('does_not_fit', `${problem}: ${issuesText(result.issues)}`, hint)
}

/** The longest reason that a tick keeps. */
const MAX_REASON = 1_000

async function judge(
  schedule: Schedule | undefined,
  { schedule: name, scheduled_for }: Extract<EvaluationRequest, { of: 'condition' }>,
  { signal }: EvaluationContext,
): Promise<EvaluationReport> {
  const when = schedule && optionsOf<ScheduleOptions>(schedule).when
  if (when === undefined) throw gone(schedule === undefined ? 'schedule' : 'condition of schedule', name)
  const said: unknown = await when({ scheduledFor: new Date(scheduled_for), signal })
  const { run, reason }: Readonly<Record<string, unknown>> = isObject(said) ? said : { run: said }
  if (typeof run !== 'boolean' || (reason !== undefined && typeof reason !== 'string'))
    throw invalid(
      'bad_result',
      `\`when\` of schedule ${name} cannot return ${shown(said)}`,
      "Return true, false or { run: false, reason: 'the shop is closed' }.",
    )
  return { outcome: 'condition', holds: run, ...(reason !== undefined && { reason: reason.slice(0, MAX_REASON) }) }
}

const gone = (kind: string, name: string): Error =>
  invalid('not_there', `the project no longer declares the ${kind} ${name}`, 'Declare it again, or delete it on the server.')
