import type { DispatchEnvelope, InputRef, StoredValue } from '../../../contract/dispatch.ts'
import { isPathOf, outputFolder } from '../../../contract/output-path.ts'
import type { AssetDefinition } from '../../../contract/project-manifest.ts'
import { inlineLimit, storedIn } from '../../../contract/stored-output.ts'
import { assetDefinitions } from '../../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import type { Link } from '../../../domain/assets/graph-mappings.ts'
import { type GraphPartitions, taskKey } from '../../../domain/assets/graph-partitions.ts'
import { partitionsOfChunkRun } from '../../../domain/backfills/frozen-set.ts'
import type { DispatchRow } from '../../../domain/dispatch/dispatch-outbox.table.ts'
import { isReadable, partitionStatus, type StatusRow } from '../../../domain/partitions/partition-status.table.ts'
import { type StoredValueRow, storedValues } from '../../../domain/partitions/stored-values.table.ts'
import { type RunTrace, traceOfAttempt, traceOfRun } from '../../../domain/runs/run-trace.ts'
import { runValues } from '../../../domain/runs/run-values.table.ts'
import { type RunRow, runs } from '../../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../../../domain/tasks/tasks.table.ts'
import type { Compactor } from '../../../engine/publish/compactor.ts'
import { ServoError } from '../../../lib/error.ts'
import { isObject } from '../../../lib/is-object.ts'
import { writeTraceparent } from '../../../lib/traceparent.ts'
import type { Columns } from '../../../model/column.ts'
import type { KeyPart, Rows } from '../../../model/rows.ts'
import type { RowOf, Table } from '../../../model/table.ts'
import { concat, type KeyList, keysOf, listOf } from '../../../partitions/key-list.ts'
import { takesMany, takesSame } from '../../../partitions/mappings/takes-many.ts'
import type { CurrentGraph } from '../current-graph.ts'
import { joinedStatus } from '../joined-status.ts'
import { refuseRemoved } from '../retention/removed-value.ts'

export interface KnownState {
  readonly rows: Rows
  /** Whether a trace is recorded by somebody. Absent: as its caller says, or else always. */
  readonly isSampled?: ((trace: RunTrace) => boolean) | undefined
  /** The partitions that a run knows, and how they depend on each other: those that exist now, or did when its backfill was created. */
  readonly partitions: (run: Readonly<RunRow> | undefined) => GraphPartitions
  /** Rows of a cold table, in the order of their keys. */
  lookup<C extends Columns>(table: Table<C>, keys: readonly KeyPart[][]): Promise<(RowOf<C> | undefined)[]>
}

export const knownState = (compactor: Compactor, graph: CurrentGraph, isSampled?: KnownState['isSampled']): KnownState => ({
  rows: compactor.state,
  isSampled,
  partitions: (run) => (run && partitionsOfChunkRun(compactor.state, run, graph.get().mappings)) ?? graph.partitions(),
  lookup: (table, keys) => compactor.lookupAll(table, keys),
})

/** Everything a worker needs to run one attempt. */
export async function envelopeFor(
  state: KnownState,
  task: Readonly<TaskRow>,
  dispatch: Readonly<DispatchRow>,
): Promise<DispatchEnvelope> {
  const run = state.rows.hot(runs).get(task.run_id)
  const place = placeOf(task)
  const definition = definitionOf(state.rows, task.asset_key ?? '')
  const wanted = Object.entries(definition?.inputs ?? {})
  const inputs: Record<string, InputRef> = {}
  const partitions = state.partitions(run)
  for (const [name, input] of wanted) inputs[name] = await inputRef({ ...state, now: partitions }, task, name, input)
  return {
    task_id: dispatch.cloud_task_id,
    task_key: task.task_key,
    run_id: task.run_id,
    attempt: dispatch.attempt,
    attempt_id: dispatch.attempt_id,
    asset_key: place.assetKey,
    partition:
      task.partition_key === null
        ? null
        : {
            key: task.partition_key,
            values: task.partition_values,
            ...(task.partition_keys && { keys: [...task.partition_keys] }),
          },
    ...(run && { traceparent: traceparentOf(state, run, dispatch.attempt_id) }),
    payload: {
      graph_version: run?.graph_version ?? null,
      inputs,
      timeout_sec: task.timeout_sec,
      heartbeat_timeout_sec: task.heartbeat_timeout_sec,
      output_folder: outputFolder(place.assetKey, place.partitionKey),
      inline_bytes: inlineLimit(definition?.partitions ? partitions.of(place.assetKey).count : 1),
      labels: run?.labels ?? {},
    },
  }
}

function traceparentOf({ isSampled }: KnownState, run: Readonly<RunRow>, attemptId: string): string {
  const trace = traceOfRun(run)
  return writeTraceparent(traceOfAttempt(trace, attemptId, isSampled?.(trace) ?? trace.caller?.sampled ?? true))
}

/** The asset and partition that a task makes, as the envelope names them. */
export const placeOf = (task: Readonly<Pick<TaskRow, 'asset_key' | 'task_key' | 'partition_key'>>) => ({
  assetKey: task.asset_key ?? task.task_key,
  partitionKey: task.partition_key,
})

function definitionOf(rows: Rows, assetKey: string): AssetDefinition | undefined {
  return rows.hot(assetDefinitions).get(assetKey)?.definition as AssetDefinition | undefined
}

type Input = AssetDefinition['inputs'][string]
/** With the partitions that the run of the task knows. */
type StateOfRun = KnownState & { readonly now: GraphPartitions }

/** The stored values of the partitions that an input takes, and whether code gets one value or a collection. */
async function inputRef(state: StateOfRun, task: Readonly<TaskRow>, name: string, input: Input): Promise<InputRef> {
  const { asset_key: upstream } = input
  const definition = definitionOf(state.rows, upstream)
  const { keys, many } = partitionsOf(state, task, input, definition)
  const ref = { asset_key: upstream, io: definition?.io ?? 'json', uri: definition?.uri ?? null, many }
  if (definition?.kind === 'source') {
    const values = definition.partitions ? [...keysOf(keys)].map((key) => ({ partition_key: key, materialization_id: '' })) : []
    return { ...ref, values }
  }
  const found = await lastValues(state, task, upstream, [...keysOf(keys)])
  const values = found.filter((value) => value !== undefined)
  if (values.length === found.length) return { ...ref, values }
  const absent = found.flatMap((value, i) => (value === undefined ? [keys.at(i)] : []))
  throw neverMade(task, name, upstream, absent)
}

/** A worker gets all of them in one message. */
const MAX_VALUES = 100_000

function partitionsOf(
  { now }: StateOfRun,
  task: Readonly<TaskRow>,
  { asset_key: upstream, mapping: said }: Input,
  definition: AssetDefinition | undefined,
): { keys: KeyList; many: boolean } {
  if (!definition?.partitions) return { keys: listOf(['']), many: false }
  const own = task.asset_key ?? ''
  const mapping = now.mapping(own, upstream, said)
  const sets = { downstream: now.of(own), upstream: now.of(upstream) }
  // Each partition of a range has inputs of its own, unless the mapping gives the same to all.
  const inRange = task.partition_keys && !takesSame(mapping) ? task.partition_keys : undefined
  const made = inRange ?? [task.partition_keys?.[0] ?? task.partition_key ?? '']
  const { keys, missing } = upstreamOf(now, own, { upstream, mapping }, made)
  const many = inRange !== undefined || takesMany(mapping, sets)
  // An asset that is made from its own past has no window before its first.
  if (own === upstream) return { keys, many }
  if (missing.count > 0) throw noSuchUpstream(task, upstream, missing.at(0))
  if (!many && keys.count === 0) throw mapping.type === 'static' ? unmapped(task, upstream) : noSuchUpstream(task, upstream)
  if (!many && keys.count > 1) throw takesOne(task, upstream, keys.count)
  if (keys.count > MAX_VALUES) throw tooManyValues(task, upstream, keys.count)
  return { keys, many }
}

/** The upstream partitions of these partitions, each once. */
function upstreamOf(
  now: GraphPartitions,
  own: string,
  link: Link,
  made: readonly string[],
): { keys: KeyList; missing: KeyList } {
  const found = made.map((key) => now.upstreamOf(own, link, key))
  const once = (lists: readonly KeyList[]): KeyList => listOf([...new Set(lists.flatMap((list) => [...keysOf(list)]))])
  const [first] = found
  if (first !== undefined && found.length === 1) return { keys: concat(first.ranges), missing: first.missing }
  return { keys: once(found.flatMap(({ ranges }) => ranges)), missing: once(found.map(({ missing }) => missing)) }
}

/** The values of upstream partitions: made by this run, or else the last materialization. */
async function lastValues(
  state: KnownState,
  task: Readonly<TaskRow>,
  upstream: string,
  keys: readonly string[],
): Promise<(StoredValue | undefined)[]> {
  const own = keys.map((key) => madeHere(state.rows, task, upstream, key))
  const others = keys.filter((_, i) => own[i] === undefined)
  const names = keysOfAsset(state.rows, upstream)
  const known = await lastMade(state, names, others)
  const values = keys.map((key, i) => own[i] ?? known.get(key))
  for (const value of values) if (value?.path) checkLies(value, names, task, upstream)
  return values
}

/** The last materializations of partitions of an asset, by partition, under all names that the asset has had. */
async function lastMade(
  { lookup }: Pick<KnownState, 'lookup'>,
  names: readonly string[],
  keys: readonly string[],
): Promise<Map<string, StoredValue>> {
  const wanted = keys.flatMap((key) => names.map((name) => [name, key]))
  if (wanted.length === 0) return new Map()
  const [statuses, stored] = await Promise.all([lookup(partitionStatus, wanted), lookup(storedValues, wanted)])
  const found = new Map<string, StoredValue>()
  for (const [i, key] of keys.entries()) {
    const [from, to] = [i * names.length, (i + 1) * names.length]
    const value = valueIn(joinedStatus(statuses.slice(from, to)), stored.slice(from, to))
    if (value !== undefined) found.set(key, value)
  }
  return found
}

/** A report is checked when it is accepted, but a ledger may hold reports that were never checked. */
function checkLies(
  { path, materialization_id, partition_key }: StoredValue,
  names: readonly string[],
  { task_key }: Readonly<TaskRow>,
  upstream: string,
): void {
  if (names.some((name) => isPathOf(path ?? '', name, materialization_id))) return
  const what = taskKey(upstream, partition_key)
  throw new ServoError(
    'invalid',
    'bad_stored_path',
    `${task_key} needs ${what}, but its recorded path ${JSON.stringify(path?.slice(0, 200))} is not in the data of ${upstream}`,
    { hint: `Materialize ${what} again.` },
  )
}

function madeHere(rows: Rows, { run_id }: Readonly<TaskRow>, upstream: string, key: string): StoredValue | undefined {
  const made = rows.hot(tasks).get(run_id, taskKey(upstream, key))
  if (!made?.materialization_id) return undefined
  const attempt = rows.hot(taskAttempts).get(made.run_id, made.task_key, made.attempt)
  const value = rows.hot(runValues).get(made.run_id, made.task_key)?.value
  const stored = storedIn(value === undefined ? attempt?.output : { ...asMembers(attempt?.output), value })
  return { partition_key: key, materialization_id: made.materialization_id, ...stored }
}

const asMembers = (output: unknown): object => (isObject(output) ? output : {})

/** Its row in `stored_values` counts if it is of the same materialization. */
function valueIn(row: StatusRow | undefined, stored: readonly (StoredValueRow | undefined)[]): StoredValue | undefined {
  if (!isReadable(row)) return undefined
  const { partition_key, last_materialization_id: materialization_id, last_materialization_path: path } = row
  const its = stored.find((each) => each?.materialization_id === materialization_id)
  const value = { partition_key, materialization_id, path }
  if (its !== undefined) refuseRemoved(its, taskKey(its.asset_key, partition_key))
  return its === undefined ? value : { ...value, path: its.path, value: its.value, bytes: its.bytes, sha256: its.sha256 }
}

function noSuchUpstream({ task_key }: Readonly<TaskRow>, upstream: string, key?: string): ServoError {
  const what = key === undefined ? `a partition of ${upstream}` : taskKey(upstream, key)
  return new ServoError('not_found', 'upstream_missing', `${task_key} needs ${what}, which does not exist`, {
    hint: 'Give this asset a later start, or its upstream an earlier one.',
  })
}

const unmapped = ({ task_key }: Readonly<TaskRow>, upstream: string): ServoError =>
  new ServoError('not_found', 'upstream_missing', `${task_key} maps to no partition of ${upstream}`, {
    hint: `Add its key to .map() of ${upstream}.`,
  })

const takesOne = ({ task_key }: Readonly<TaskRow>, upstream: string, count: number): ServoError =>
  new ServoError('invalid', 'several_values', `${task_key} needs one partition of ${upstream}, but ${count} overlap it`, {
    hint: 'Their windows begin at different times. Take them as a Map: .window({ from: 0, to: 0 }).',
  })

const tooManyValues = ({ task_key }: Readonly<TaskRow>, upstream: string, count: number): ServoError =>
  new ServoError(
    'invalid',
    'too_many_values',
    `${task_key} needs ${count} partitions of ${upstream}; the limit is ${MAX_VALUES}`,
    {
      hint: 'List the asset in `deps` instead and read its data in the body.',
    },
  )

function neverMade(task: Readonly<TaskRow>, name: string, upstream: string, absent: readonly string[]): ServoError {
  const [first = ''] = absent
  const more = absent.length > 1 ? ` and ${absent.length - 1} more` : ''
  return new ServoError(
    'not_found',
    'input_missing',
    `${task.task_key} needs ${taskKey(upstream, first)}${more} (its input ${name}), which was never materialized`,
    {
      hint:
        first === ''
          ? `Run it too: servo run "+key:\\"${task.asset_key}\\""`
          : `Materialize it first: servo run ${upstream} --partition ${first}`,
    },
  )
}
