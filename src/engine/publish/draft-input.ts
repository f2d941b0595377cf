import type { ObjectStore } from '../../ports/object-store.ts'
import type { State } from '../fold/state.ts'
import type { SealedRows } from '../history/sealed-rows.ts'
import type { HistoryRule, Manifest, NewestEvent } from '../manifest/manifest.ts'
import type { Scope } from '../paths.ts'
import type { RowsInTransit } from '../sorted/cold-store.ts'
import type { Encoder } from './encoder.ts'
import type { Retention } from './retention.ts'

/** The state that a draft is made from. */
export interface DraftInput {
  readonly store: ObjectStore
  readonly scope: Scope
  readonly state: State
  /** The newest manifest; the draft follows it. */
  readonly manifest: Manifest
  readonly epoch: number
  readonly compactor: string
  readonly publishedAt: string
  readonly nowMs: number
  /** How many events were folded since the last publish. */
  readonly events: number
  /** The event that stands last in order. */
  readonly newestEvent: NewestEvent | undefined
  /** The days of the ledger as this publish leaves them. */
  readonly days: Required<Pick<Manifest, 'closed_days' | 'settled_days'>>
  readonly retention: Retention
  /** How a base keeps history. Absent for the replay of what an earlier version published. */
  readonly history: HistoryRule | undefined
  /** Filled with the cold rows that a base takes out of memory. */
  readonly inTransit: RowsInTransit
  /** Filled with the rows that a base seals. */
  readonly sealing: SealedRows
  readonly encoder: Encoder
}
