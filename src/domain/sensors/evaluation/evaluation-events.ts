import type { AskedRun } from '../../../contract/evaluation.ts'
import type { ReportedKeys } from '../../../contract/partition-keys.ts'
import { isServoError } from '../../../lib/error.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { AutomationRequest, RequestRun } from '../../automation/request-run.ts'
import { chooseWork } from '../../planning/plan-choice.ts'
import { type RunOfKey, requestByKey } from '../../runs/again.ts'
import { requestFingerprint } from '../../runs/run-ids.ts'
import type { GraphAtTick } from '../../schedules/deciding/work-of-tick.ts'
import { selectedAssets } from '../../selection/selected-assets.ts'
import { evalIdOf, runKeyOfEvaluation } from '../evaluation-ids.ts'
import { MAX_CHAIN, MAX_CURSOR, MAX_RUNS } from '../limits.ts'
import type { SensorRow } from '../sensor-definitions.table.ts'
import { SensorEvaluated } from '../sensor-evaluated.event.ts'

/** An event may have 1 MiB; the rest is for its envelope. */
const MAX_BYTES = 900_000
const MAX_ERROR = 16_384

/** What the code of a sensor returned, or how it ended without returning. */
export type EvaluationResult =
  | ({ readonly runs: readonly AskedRun[]; readonly cursor?: string | null | undefined } & ReportedKeys)
  /** `unfit_field`: the message does not fit, so that sending it again as it is helps only if the sensor changes. */
  | { readonly error: string; readonly unfit_field?: string | undefined }
  | { readonly timedOut: true }

/** A message at its nth try, or a poll with the cursor that it began from. */
export type EvaluatedSource =
  | {
      readonly source: 'push'
      readonly message_id: string
      readonly try: number
      readonly body_hash?: string | null
      readonly body_size?: number | null
    }
  | { readonly source: 'poll'; readonly state_version: number; readonly cursor: string | null }

export interface EvaluationToRecord {
  readonly definition: Readonly<SensorRow>
  readonly source: EvaluatedSource
  /** Chosen when the evaluation began. */
  readonly begun: string
  readonly result: EvaluationResult
  readonly at: GraphAtTick
  readonly requestRun: RequestRun
  /** The run that a key has made, so that asking again for one that failed is a rerun of it. */
  readonly runOf?: (runKey: string) => RunOfKey | undefined
  readonly requested_by?: string | null
  /** How many runs in a row sensors have asked for, each because of the one before, until what is evaluated happened. */
  readonly chain?: number | undefined
  /** The trace of the sender. */
  readonly traceparent?: string | undefined
  readonly duration_ms?: number
  /** The turn of the clock in which it changes keys. */
  readonly keysTurn?: { readonly keys_clock_turn?: number }
}

/** An evaluation and the runs it asks for, or the reason why it counts for nothing: what belongs together is written together. */
export function evaluationEvents(evaluation: EvaluationToRecord): NewEvent[] {
  const { definition, source, begun, result, requestRun, requested_by = null, traceparent } = evaluation
  const { sensor_id, row_version } = definition
  const context = {
    causation_id: row_version,
    ...(requested_by !== null && { actor: requested_by }),
    ...(traceparent !== undefined && { traceparent }),
  }
  const facts = {
    sensor_id,
    trigger_source:
      source.source === 'push'
        ? { ...source, max_tries: definition.max_tries }
        : { source: source.source, state_version: source.state_version },
    begun,
    definition_version: row_version,
    requested_by,
    cursor_before: source.source === 'poll' ? source.cursor : null,
    duration_ms: evaluation.duration_ms ?? null,
  }
  const failed = (error: string, kind: { refused?: true; unfit?: true } = {}): NewEvent[] => [
    newEvent(
      SensorEvaluated,
      { ...facts, status: 'error', error: error.slice(0, MAX_ERROR) || 'no reason was given', ...kind },
      context,
    ),
  ]

  if ('timedOut' in result) return failed(timedOut(definition))
  if ('error' in result) return failed(result.error, isUnfit(definition, result) ? { unfit: true } : {})
  const { runs, cursor = null, ...keys } = result
  const inARow = tooManyInARow(evaluation, runs)
  if (inARow !== undefined) return failed(inARow, { refused: true })
  const wrong = tooMuch(result) ?? wrongRun(evaluation, runs)
  if (wrong !== undefined) return failed(wrong)
  const requests = runs.map((run, index) => ({ ...requestOf(evaluation, run, index), ...context }))
  const asked = new Map(
    requests.map((request) => {
      const request_fingerprint = requestFingerprint(request)
      return [`${request.run_key}\n${request_fingerprint}`, { run_key: request.run_key, request_fingerprint }]
    }),
  )
  const evaluated = {
    ...facts,
    ...keys,
    ...evaluation.keysTurn,
    cursor_after: source.source === 'poll' ? cursor : null,
    status: requests.length > 0 ? ('triggered' as const) : ('no_new_data' as const),
    run_keys: [...asked.values()].map(({ run_key }) => run_key),
    run_fingerprints: [...asked.values()].map(({ request_fingerprint }) => request_fingerprint),
  }
  const bytes = Buffer.byteLength(JSON.stringify(evaluated))
  if (bytes > MAX_BYTES)
    return failed(`its result has ${bytes} bytes; the limit is ${MAX_BYTES}. Return fewer keys or runs at a time.`)
  return [newEvent(SensorEvaluated, evaluated, context), ...requests.map((request) => requestRun(request).event)]
}

/** True if a message from outside does not fit. What happened here and does not fit shows that the sensor is not in order. */
const isUnfit = ({ config }: Readonly<SensorRow>, { unfit_field }: Extract<EvaluationResult, { error: string }>): boolean =>
  unfit_field !== undefined && (config.type === 'webhook' || config.type === 'pubsub')

/** True if a poll found nothing, so that its record may wait for that of others. */
export function isEmptyPoll(result: EvaluationResult, cursor: string | null): boolean {
  if (!('runs' in result)) return false
  const keys = [...(result.partition_keys_added ?? []), ...(result.partition_keys_removed ?? [])]
  return result.runs.length === 0 && keys.length === 0 && (result.cursor ?? cursor) === cursor
}

function requestOf(
  { definition, source, begun, runOf, chain = 0 }: EvaluationToRecord,
  run: AskedRun,
  index: number,
): AutomationRequest {
  const { sensor_id } = definition
  const work = {
    asset_selection: run.asset_selection,
    partition_selection: run.partition_selection ?? null,
    labels: run.labels ?? {},
  }
  const asked = {
    run_key: runKeyOfEvaluation(sensor_id, source, index, run.key),
    request_fingerprint: requestFingerprint(work),
    source: {
      ...{ type: 'sensor' as const, sensor_id, eval_id: evalIdOf(sensor_id, source, begun) },
      ...(chain > 0 && { chain: chain + 1 }),
    },
  }
  const { run_key, source: asker } = run.key == null || runOf === undefined ? asked : requestByKey(asked, runOf)
  return { ...work, run_key, source: asker, priority: run.priority ?? 0 }
}

const timedOut = ({ timeout_ms, sensor_name }: Readonly<SensorRow>): string =>
  `it took longer than its timeout of ${timeout_ms} ms. Do less at a time in ${sensor_name}, or raise its timeout.`

function tooMuch({ runs, cursor }: Extract<EvaluationResult, { runs: unknown }>): string | undefined {
  if (runs.length > MAX_RUNS)
    return `it requested ${runs.length} runs; the limit of one evaluation is ${MAX_RUNS}. Return the first of them and a cursor that points after them, or request a backfill.`
  if ((cursor?.length ?? 0) > MAX_CURSOR)
    return `its cursor has ${cursor?.length} characters; the limit is ${MAX_CURSOR}. Keep only a position in the cursor.`
  return undefined
}

/** Sensors that ask for what another of them watches may never end, unless somebody stops them. Trying again would not change the count. */
function tooManyInARow({ definition, chain = 0 }: EvaluationToRecord, runs: readonly AskedRun[]): string | undefined {
  if (chain < MAX_CHAIN || runs.length === 0) return undefined
  return `sensors requested ${chain} runs in a row, each triggered by the one before; that is the limit. If sensors trigger each other, change ${definition.sensor_name} so that its runs do not lead back to it.`
}

/** What is wrong with the runs, before any of them is requested: a result counts whole or not at all. */
function wrongRun({ definition, at }: EvaluationToRecord, runs: readonly AskedRun[]): string | undefined {
  try {
    const allowed =
      definition.asset_selection.length === 0 ? undefined : new Set(selectedAssets(at.graph, definition.asset_selection))
    for (const { asset_selection, partition_selection = null } of runs) {
      const chosen = chooseWork({ asset_selection, partition_selection }, at.graph, at.partitions)
      if ('error' in chosen) return chosen.error
      const stranger = allowed && chosen.order.find((key) => !allowed.has(key))
      if (stranger !== undefined)
        return `it requested ${stranger}, which ${definition.sensor_name} may not run. Add it to \`select\` of the sensor.`
    }
    return undefined
  } catch (error) {
    if (!isServoError(error)) throw error
    return error.hint === undefined ? error.message : `${error.message}. ${error.hint}`
  }
}
