import { randomBytes } from 'node:crypto'
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fsStore } from '../../src/adapters/fs/object-store.ts'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { orchestration } from '../../src/domain/index.ts'
import { MaterializationReported } from '../../src/domain/partitions/materialization-reported.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { segmentUlid } from '../../src/engine/paths.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { toIso } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { type NewEvent, newEvent } from '../../src/model/event.ts'
import { partitionDefinition } from '../../src/partitions/definition.ts'
import { sourceHash } from './kept-history.ts'
import { scratchRoot } from './scratch.ts'
import { scope } from './stream.ts'

const START = '2024-01-01T00:00'
const START_MS = Date.parse(`${START}Z`)
const MINUTE = 60_000
/** When the first partition was made; the others follow at this distance. */
const MADE_MS = Date.parse('2026-01-01T00:00Z')
const APART_MS = 10

/** Two assets of so many minutes, the second made from the first, minute by minute. */
const definitionOf = (count: number) =>
  partitionDefinition.parse({
    type: 'minutely',
    start: START,
    end: toIso(START_MS + count * MINUTE).slice(0, 16),
    timezone: 'UTC',
  })

/** A workspace in a folder, for writing facts into it. */
export async function openReported(folder: string) {
  let nowMs = MADE_MS
  const clock = { now: () => nowMs, monotonic: () => nowMs, sleep: () => Promise.resolve() }
  const store = fsStore(folder)
  const ulid = ulidSource(clock.now, (length) => randomBytes(length))
  const compactor = await Compactor.open({ store, scope, registry: orchestration, clock, name: 'bench' })
  const ledger = new Ledger({ store, scope, clock, ulid, source: 'bench' })
  return {
    compactor,
    async write(events: readonly NewEvent[], at: number): Promise<void> {
      nowMs = at
      const { segment, events: written } = await ledger.append(events)
      await compactor.fold.apply([{ ulid: segmentUlid(segment) ?? segment, events: written }])
    },
  }
}

export function report(asset: string, partition: string, atMs: number): NewEvent {
  return newEvent(MaterializationReported, {
    report_id: `${asset}:${partition}:${atMs}`,
    asset_key: asset,
    partition_key: partition,
    materialized_at: toIso(atMs),
    code_version: 'v1',
    reported_by: 'bench',
  })
}

const IN_A_SEGMENT = 5_000

/** A folder in which all partitions of `up` and `down` are made, one after the other. Kept for the next time. */
export async function reportedFolder(count: number): Promise<string> {
  const place = path.join(scratchRoot(), `kept-reported-${count}-${sourceHash}`)
  if (existsSync(place)) return place
  for (const old of globSync(path.join(scratchRoot(), `kept-reported-${count}-*`)))
    rmSync(old, { recursive: true, force: true })
  console.log(`making ${(2 * count).toLocaleString('en')} partitions, which takes minutes; they are kept for the next time`)
  const draft = `${place}.${process.pid}`
  mkdirSync(draft, { recursive: true })
  const { compactor, write } = await openReported(draft)
  const partitions = definitionOf(count)
  const asset = { kind: 'asset', io: 'none', partitions, code_version: 'v1' } as const
  const assets = [
    assetDefinition.parse({ ...asset, asset_key: 'up' }),
    assetDefinition.parse({ ...asset, asset_key: 'down', deps: [{ asset_key: 'up' }] }),
  ]
  const declared = assets.map((definition) => ({
    asset_key: definition.asset_key,
    asset_id: definition.asset_key,
    code_version: 'v1',
    definition,
  }))
  await write([newEvent(AssetsDefined, { graph_version: 'g1', assets: declared })], MADE_MS)
  for (let from = 0; from < count; from += IN_A_SEGMENT / 2) {
    const events: NewEvent[] = []
    let at = MADE_MS
    for (let position = from; position < Math.min(from + IN_A_SEGMENT / 2, count); position++) {
      const key = keyAt(count, position)
      at = madeAt(position)
      events.push(report('up', key, at), report('down', key, at + 1))
    }
    await write(events, at + 1)
    await compactor.publish()
  }
  await compactor.publish({ kind: 'base' })
  renameSync(draft, place)
  return place
}

export const madeAt = (position: number): number => MADE_MS + position * APART_MS

/** The key of the partition at a position. */
export function keyAt(count: number, position: number): string {
  if (position < 0 || position >= count) throw new RangeError(`there is no partition ${position}`)
  return toIso(START_MS + position * MINUTE).slice(0, 16)
}
