import { orchestration } from '../../domain/index.ts'
import { Packer } from '../../engine/pack/packer.ts'
import type { Compactor } from '../../engine/publish/compactor.ts'
import { collectGarbage } from '../../engine/publish/garbage.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { Components } from '../components.ts'

/** What a leader does with its store when nothing else is to be done: removes what nobody needs, and packs the ledger. */
export function upkeepOf({ store, scope, clock }: Components, compactor: Compactor, lease: HeldLease) {
  const options = { store, scope, clock, registry: orchestration, lease }
  const packer = new Packer({ ...options, compactor })
  return { collect: () => collectGarbage(options), pack: () => packer.step() }
}
