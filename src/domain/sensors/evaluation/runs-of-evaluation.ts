import type { RunOfEvaluation } from '../../../contract/delivery.ts'
import { toIso } from '../../../lib/time.ts'
import type { RowOf } from '../../../model/table.ts'
import type { runKeyIndex } from '../../runs/run-key-index.table.ts'
import { evaluationOf } from '../../runs/trigger.ts'
import { keyInRunKey } from '../evaluation-ids.ts'
import type { SensorEvalRow } from '../sensor-evals.table.ts'

type Asked = Pick<SensorEvalRow, 'eval_id' | 'accepted' | 'run_keys' | 'run_fingerprints'>
type KeyRow = Readonly<RowOf<(typeof runKeyIndex)['columns']>>

/** What became of each request of an evaluation: a new run, the run of an earlier request with its key, or a conflict with that one. */
export function runsOfEvaluation(
  evaluation: Readonly<Asked>,
  rowOf: (runKey: string) => KeyRow | undefined,
): RunOfEvaluation[] {
  if (!evaluation.accepted) return []
  return evaluation.run_keys.flatMap((run_key, index) => {
    const row = rowOf(run_key)
    if (row === undefined) return []
    const asked = evaluation.run_fingerprints?.[index]
    const conflict = asked !== undefined && asked !== row.request_fingerprint
    const asker = row.request === null ? undefined : evaluationOf(row.request.source)
    const created = !conflict && asker?.eval_id === evaluation.eval_id
    const { run_id, created_at } = row
    return [{ run_id, run_key, key: keyInRunKey(run_key), created, conflict, requested_at: toIso(created_at) }]
  })
}

/** Each run once. */
export const idsOfRuns = (runs: readonly RunOfEvaluation[]): string[] => [...new Set(runs.map(({ run_id }) => run_id))]
