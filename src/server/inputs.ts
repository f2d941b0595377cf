import type { AssetDefinition } from '../contract/definition.ts'
import type { DispatchEnvelope, InputRef } from '../contract/dispatch.ts'
import { assetDefinitions } from '../domain/assets/asset-definitions.table.ts'
import { taskKey } from '../domain/assets/plan.ts'
import type { dispatchOutbox } from '../domain/dispatch/dispatch-outbox.table.ts'
import { partitionStatus } from '../domain/partitions/partition-status.table.ts'
import { runs } from '../domain/runs/runs.table.ts'
import { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../domain/tasks/tasks.table.ts'
import { ServoError } from '../lib/error.ts'
import type { Columns } from '../model/column.ts'
import type { KeyPart, Rows } from '../model/rows.ts'
import type { Row, RowOf, Table } from '../model/table.ts'

export interface KnownState {
  readonly rows: Rows
  lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined>
}

/** Everything a worker needs to know to run one attempt. */
export async function envelopeFor(
  state: KnownState,
  task: Readonly<TaskRow>,
  dispatch: Readonly<Row<typeof dispatchOutbox>>,
): Promise<DispatchEnvelope> {
  const run = state.rows.hot(runs).get(task.run_id)
  const wanted = Object.entries(definitionOf(state.rows, task.asset_key ?? '')?.inputs ?? {})
  const inputs: Record<string, InputRef> = {}
  for (const [name, { asset_key, mapping }] of wanted) {
    if (mapping) throw otherPartitions(task, name, mapping.type)
    inputs[name] = await inputRef(state, task, name, asset_key)
  }
  return {
    task_id: dispatch.cloud_task_id,
    task_key: task.task_key,
    run_id: task.run_id,
    attempt: dispatch.attempt,
    attempt_id: dispatch.attempt_id,
    asset_key: task.asset_key ?? task.task_key,
    partition: task.partition_key === null ? null : { key: task.partition_key, values: task.partition_values },
    payload: {
      graph_version: run?.graph_version ?? null,
      inputs,
      timeout_sec: task.timeout_sec,
      heartbeat_timeout_sec: task.heartbeat_timeout_sec,
      labels: run?.labels ?? {},
    },
  }
}

function definitionOf(rows: Rows, assetKey: string): AssetDefinition | undefined {
  return rows.hot(assetDefinitions).get(assetKey)?.definition as AssetDefinition | undefined
}

/** What this run made of the upstream asset if it did, otherwise the last that anybody made. */
async function inputRef(state: KnownState, task: Readonly<TaskRow>, name: string, upstream: string): Promise<InputRef> {
  const definition = definitionOf(state.rows, upstream)
  const partition = definition?.partitions ? task.partition_key : null
  const ref = { asset_key: upstream, io: definition?.io ?? 'json', uri: definition?.uri ?? null, many: false }
  if (definition?.kind === 'source') return { ...ref, values: [] }
  const made = state.rows.hot(tasks).get(task.run_id, taskKey(upstream, partition))
  if (made?.materialization_id) {
    const attempt = state.rows.hot(taskAttempts).get(made.run_id, made.task_key, made.attempt)
    const path = (attempt?.output as { path?: string | null } | null)?.path ?? null
    return { ...ref, values: [{ partition_key: partition ?? '', materialization_id: made.materialization_id, path }] }
  }
  const known = await state.lookup(partitionStatus, upstream, partition ?? '')
  if (!known?.last_materialization_id || isWiped(known)) throw neverMade(task, name, upstream, partition)
  const { last_materialization_id: materialization_id, last_materialization_path: path } = known
  return { ...ref, values: [{ partition_key: partition ?? '', materialization_id, path }] }
}

const isWiped = ({ wiped_at, last_materialization_at }: RowOf<typeof partitionStatus.columns>): boolean =>
  wiped_at !== null && wiped_at >= (last_materialization_at ?? 0)

/** Its own partition instead would be wrong data that looks right. */
const otherPartitions = ({ task_key }: Readonly<TaskRow>, name: string, mapping: string): ServoError =>
  new ServoError(
    'invalid',
    'mapping_unsupported',
    `${task_key} takes other partitions than its own as ${name} (${mapping}), which cannot be loaded yet`,
    { hint: 'Until it can, list the asset in deps and read what is needed in the body.' },
  )

function neverMade(task: Readonly<TaskRow>, name: string, upstream: string, partition: string | null): ServoError {
  const what = taskKey(upstream, partition)
  return new ServoError(
    'not_found',
    'input_missing',
    `${task.task_key} needs ${what} (its input ${name}), which was never made`,
    {
      hint: `Run it too: servo run "+key:\\"${task.asset_key}\\""`,
    },
  )
}
