import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { copyState } from '../../src/engine/backup/copy-state.ts'
import { readSegment } from '../../src/engine/ledger/read-segment.ts'
import { archivesOf } from '../../src/engine/manifest/manifest.ts'
import { readEntries } from '../../src/engine/manifest/page-list.ts'
import { Packer, type PackerOptions } from '../../src/engine/pack/packer.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { sha256 } from '../../src/lib/hash.ts'
import { DAY_MS, utcDay } from '../../src/lib/time.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { storedRows } from '../../src/testing/stored-rows.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, scope, Workspace } from './workspace.ts'

export function packerOf(workspace: Workspace, compactor: Compactor, options: Partial<PackerOptions> = {}): Packer {
  const { store, clock } = workspace
  return new Packer({ store, scope, clock, registry: orchestration, compactor, ...options })
}

async function publishNext(workspace: Workspace, compactor: Compactor, name: string): Promise<void> {
  await workspace.appendAll(runFacts(name, { tasks: 1 }).batches)
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
}

/** So many days with a few runs each, of which all but the last two are settled, and nothing is packed. */
async function severalDays(days: number, workspace = new Workspace()): Promise<{ workspace: Workspace; compactor: Compactor }> {
  const compactor = await workspace.compactor()
  for (let day = 0; day < days; day++) {
    for (const name of ['a', 'b']) await publishNext(workspace, compactor, `${name}${day}`)
    workspace.clock.pass(DAY_MS)
  }
  return { workspace, compactor }
}

async function packAll(packer: Packer): Promise<number> {
  let steps = 0
  while (await packer.step()) steps += 1
  return steps
}

const archivesIn = (workspace: Workspace): Promise<string[]> => workspace.paths(paths.archives)
const segmentsIn = (workspace: Workspace): Promise<string[]> => workspace.paths(paths.ledger)

describe('packing', () => {
  test('[L10] makes one archive of a day that was settled a day ago, byte for byte, which anybody can read', async () => {
    const { workspace, compactor } = await severalDays(4)
    const before = new Map<string, Uint8Array>()
    for (const path of await segmentsIn(workspace)) before.set(path, (await workspace.store.get(path))!)
    await packAll(packerOf(workspace, compactor))
    const archives = await archivesIn(workspace)
    expect(archives).toEqual(['2025-01-15', '2025-01-16'].map((day) => paths.archive(day, 1)))
    const left = await segmentsIn(workspace)
    expect(left.every((path) => path.includes('/2025-01-17/') || path.includes('/2025-01-18/'))).toBe(true)
    for (const [path, bytes] of before) {
      if (left.includes(path)) continue
      const segment = await readSegment({ store: workspace.store, paths, scope }, path.slice(-31, -5))
      expect(segment?.events.length).toBeGreaterThan(0)
      const text = zstdDecompressSync((await workspace.store.get(archives.find((archive) => archive.includes(path.split('/').at(-2)!))!))!)
      expect(text.includes(Buffer.concat([bytes, Buffer.from('\n')]))).toBe(true)
    }
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], replayed: true, segments: before.size, unfolded: [] })
    const named = await Array.fromAsync(readEntries(workspace.store, archivesOf(compactor.manifest)))
    expect(named.map(({ path }) => path)).toEqual(archives)
  })
})
