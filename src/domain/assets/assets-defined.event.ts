import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { assetDefinitions } from './asset-definitions.table.ts'

export const AssetsDefined = defineEvent({
  type: 'AssetsDefined',
  version: 1,
  doc: 'A version of the asset graph was loaded: what changed in it since the version before.',
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
    part: z.number().int().min(0).default(0),
  }),
  idempotencyKey: (graph) => `assets:${graph.graph_version}:${graph.part}`,
  dedup: 'structure',
  fold({ event, at, payload: graph, rows }) {
    let changed = false
    for (const asset of graph.assets) {
      const known = rows.hot(assetDefinitions).get(asset.asset_key)
      // The newest declaration counts, in whatever order they arrive.
      if (known !== undefined && known.row_version >= event.event_id) continue
      changed = true
      rows.hot(assetDefinitions).insert({
        asset_key: asset.asset_key,
        asset_id: asset.asset_id,
        graph_version: graph.graph_version,
        code_version: asset.code_version ?? null,
        definition: asset.definition,
        renamed_from: asset.renamed_from ?? null,
        removed: asset.removed,
        defined_at: at,
        row_version: event.event_id,
      })
    }
    return changed ? applied : duplicate
  },
})
