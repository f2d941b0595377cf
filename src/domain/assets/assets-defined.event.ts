import { z } from 'zod'
import { canonicalJson } from '../../lib/json.ts'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { editKnown } from '../typed-rows.ts'
import { assetDefinitions } from './asset-definitions.table.ts'
import { pools } from './pools.table.ts'

export const AssetsDefined = defineEvent({
  type: 'AssetsDefined',
  version: 1,
  doc: 'A version of the asset graph was loaded: what changed since the version before.',
  payload: z.object({
    graph_version: id,
    assets: z
      .array(
        z.object({
          asset_key: id,
          asset_id: id,
          code_version: id.nullish(),
          definition: z.unknown(),
          renamed_from: id.nullish(),
          removed: z.boolean().default(false),
        }),
      )
      .max(2_000),
    /** Pools that changed; a pool without slots was removed. */
    pools: z
      .array(z.object({ pool: id, slots: z.number().int().min(1).max(100_000).nullable() }))
      .max(10_000)
      .nullish(),
    part: z.number().int().min(0).default(0),
    /** Larger than that of the declarations it replaces if a clock that was ahead has recorded one of them. */
    clock_turn: z.number().int().min(0).nullish(),
  }),
  idempotencyKey: (graph) => `assets:${graph.graph_version}:${graph.part}`,
  dedup: 'structure',
  fold({ event, at, payload: graph, rows }) {
    const clock_turn = graph.clock_turn ?? null
    // The newest declaration counts, in whatever order they arrive.
    const isNews = (known: { clock_turn: number | null; row_version: string } | undefined) =>
      known === undefined ||
      ((known.clock_turn ?? 0) === (clock_turn ?? 0)
        ? known.row_version < event.event_id
        : (known.clock_turn ?? 0) < (clock_turn ?? 0))
    const declared = { defined_at: at, clock_turn, row_version: event.event_id }
    let changed = false
    for (const asset of graph.assets) {
      const known = rows.hot(assetDefinitions).get(asset.asset_key)
      const varied = known?.partitions_varied === true || (known !== undefined && !isSamePartitions(known, asset))
      if (known !== undefined && !isNews(known)) {
        // An older declaration only shows that the partitions were different once.
        if (varied === known.partitions_varied) continue
        editKnown(rows.hot(assetDefinitions), asset.asset_key).partitions_varied = varied
        changed = true
        continue
      }
      changed = true
      rows.hot(assetDefinitions).insert({
        asset_key: asset.asset_key,
        asset_id: asset.asset_id,
        graph_version: graph.graph_version,
        code_version: asset.code_version ?? null,
        definition: asset.definition,
        renamed_from: asset.renamed_from ?? null,
        removed: asset.removed,
        // Null was recorded by a version that did not compare, so the answer stays unknown.
        partitions_varied: known?.partitions_varied === null ? null : varied,
        ...declared,
      })
    }
    for (const { pool, slots } of graph.pools ?? []) {
      if (!isNews(rows.hot(pools).get(pool))) continue
      changed = true
      rows.hot(pools).insert({ pool, slots, ...declared })
    }
    return changed ? applied : duplicate
  },
})

function isSamePartitions(known: { readonly definition: unknown }, asset: { readonly definition?: unknown }): boolean {
  return canonicalJson(partitionsIn(known.definition)) === canonicalJson(partitionsIn(asset.definition))
}

/** Definitions are stored as any version of Servo wrote them. */
function partitionsIn(definition: unknown): unknown {
  const isObject = typeof definition === 'object' && definition !== null
  return isObject && 'partitions' in definition ? (definition.partitions ?? null) : null
}
