import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fsStore } from '../../adapters/fs/object-store.ts'
import { orchestration } from '../../domain/index.ts'
import type { ColdRowsToRead } from '../../engine/cold-rows.ts'
import { Ledger } from '../../engine/ledger.ts'
import type { State } from '../../engine/state.ts'
import { View } from '../../engine/view.ts'
import { ServoError } from '../../lib/error.ts'
import { type UlidSource, ulidSource } from '../../lib/ulid.ts'
import type { Columns } from '../../model/column.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import { systemClock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { localScope } from '../machine/local-files.ts'

/** Nobody else is waiting: better slow than wrong. */
const PATIENT = { maxEvents: 5_000_000, maxTimeMs: 60_000 }

/** A folder while no server runs: all that is known, and a ledger to add to. */
export interface OfflineState {
  readonly store: ObjectStore
  /** The published tables with everything folded that happened since. */
  readonly state: State
  lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined>
  coldRows(table: Table): ColdRowsToRead
  readonly ledger: Ledger
  readonly ulid: UlidSource
}

export async function openOffline(servoDir: string): Promise<OfflineState> {
  if (!existsSync(servoDir)) {
    throw new ServoError('not_found', 'no_state', `there is nothing in ${servoDir} yet`, {
      hint: 'Start the project: servo dev, or run something: servo run "*"',
    })
  }
  const store = fsStore(servoDir)
  const view = await View.open({ store, scope: localScope, registry: orchestration, clock: systemClock })
  const { state, complete } = await view.fresh(PATIENT)
  if (!complete) {
    throw new ServoError(
      'unavailable',
      'tail_too_long',
      'more has happened since the tables were written than can be read here',
      {
        hint: 'Start the project once (servo dev), or run servo verify to see whether something is damaged.',
      },
    )
  }
  const ulid = ulidSource(systemClock.now, (length) => randomBytes(length))
  const ledger = new Ledger({ store, scope: localScope, clock: systemClock, ulid, source: 'servo/cli' })
  const coldRows = (table: Table): ColdRowsToRead => view.coldRows(table, state)
  return {
    store,
    state,
    ledger,
    ulid,
    coldRows,
    async lookup(table, ...key) {
      const [row] = await coldRows(table as unknown as Table).lookup([key])
      return row as RowOf<(typeof table)['columns']> | undefined
    },
  }
}
