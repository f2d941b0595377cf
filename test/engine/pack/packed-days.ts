import { orchestration } from '../../../src/domain/index.ts'
import { scanLedger } from '../../../src/engine/ledger/scan-ledger.ts'
import { Packer, type PackerOptions } from '../../../src/engine/pack/packer.ts'
import type { Compactor } from '../../../src/engine/publish/compactor.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import type { NewEvent } from '../../../src/model/event.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { paths, scope, Workspace } from '../workspace.ts'

export function packerOf(workspace: Workspace, compactor: Compactor, options: Partial<PackerOptions> = {}): Packer {
  const { store, clock } = workspace
  return new Packer({ store, scope, clock, registry: orchestration, compactor, ...options })
}

export async function packAll(packer: Packer): Promise<number> {
  let steps = 0
  while (await packer.step()) steps += 1
  return steps
}

export async function publishNext(workspace: Workspace, compactor: Compactor, ...events: NewEvent[]): Promise<void> {
  await workspace.append(...events)
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
}

/** The first days of `severalDays`. */
export const FIRST = ['2025-01-15', '2025-01-16', '2025-01-17'] as const

/** So many days with a run and a report each. All but the last one are settled and can be packed. */
export async function severalDays(
  days: number,
  workspace = new Workspace(),
): Promise<{ workspace: Workspace; compactor: Compactor }> {
  const compactor = await workspace.compactor()
  for (let day = 0; day < days; day++) {
    await workspace.appendAll(runFacts(`run ${day}`, { tasks: 1 }).batches.slice(0, -1))
    for (const name of ['a', 'b']) await publishNext(workspace, compactor, reportFact(`${name} ${day}`))
    workspace.clock.pass(DAY_MS)
  }
  return { workspace, compactor }
}

/** How often each event is in the ledger. */
export async function eventCounts({ store }: Workspace): Promise<Map<string, number>> {
  const counts = new Map<string, number>()
  for await (const scanned of scanLedger({ store, paths, scope })) {
    if ('error' in scanned) throw scanned.error
    for (const { event_id } of scanned.segment.events) counts.set(event_id, (counts.get(event_id) ?? 0) + 1)
  }
  return counts
}
