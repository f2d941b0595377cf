import { orchestration } from '../../domain/index.ts'
import type { Loop } from '../../engine/loop/loop.ts'
import { Packer } from '../../engine/pack/packer.ts'
import { type CollectionLimit, collectGarbage } from '../../engine/publish/garbage.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { Components } from '../components.ts'
import { coldRowsOf } from './known-rows.ts'
import { forgottenValues } from './retention/forgotten-values.ts'

/** What a leader does with its store when nothing else is to be done: removes what nobody needs, and packs the ledger. */
export function upkeepOf({ store, scope, clock }: Components, loop: Loop, lease: HeldLease) {
  const { compactor } = loop
  const options = { store, scope, clock, registry: orchestration, lease }
  const packer = new Packer({
    ...options,
    compactor,
    async findForgotten(events) {
      const found = await forgottenValues({ coldRows: (table) => coldRowsOf(compactor, table) }, events)
      // The removal of one may be folded and not durable yet: its value must not be gone before.
      loop.closeSegment()
      await loop.durable()
      return found
    },
  })
  return {
    collect: (limit?: CollectionLimit) => collectGarbage({ ...options, limit }),
    pack: () => packer.step(),
  }
}
