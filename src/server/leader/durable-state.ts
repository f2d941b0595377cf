import { orchestration } from '../../domain/index.ts'
import type { State } from '../../engine/fold/state.ts'
import type { EndedWork } from '../../engine/history/history-reader.ts'
import { View } from '../../engine/loop/view.ts'
import type { RecordedOrder } from '../../engine/manifest/recorded-order.ts'
import type { ColdRowsToRead } from '../../engine/sorted/cold-store.ts'
import { ServoError } from '../../lib/error.ts'
import type { Table } from '../../model/table.ts'
import type { Components } from '../components.ts'

/** The rows of a process that folds, or of a reader of published rows. */
export interface Readable {
  readonly state: State
  coldRows(table: Table): ColdRowsToRead
  /** What has ended, as of this moment. */
  readonly history: EndedWork
  /** Everything on record as of this moment, in order. */
  recordedOrder(): RecordedOrder | Promise<RecordedOrder>
}

/** Only one command waits, so the limits are generous: better slow than wrong. */
const PATIENT = { maxEvents: 5_000_000, maxTimeMs: 60_000 }

/** The state for processes that only read: the published tables, with everything folded that happened since. */
export async function durableState({ store, scope, clock }: Components): Promise<Readable> {
  const view = await View.open({ store, scope, registry: orchestration, clock })
  const { state, complete } = await view.fresh(PATIENT)
  if (complete)
    return {
      state,
      coldRows: (table) => view.coldRows(table, state),
      history: view.history,
      recordedOrder: () => view.recordedOrder(),
    }
  throw new ServoError('unavailable', 'tail_too_long', 'too much has happened since the tables were last written', {
    hint: 'Start the project once (servo dev), or run `servo verify` to look for damage.',
  })
}
