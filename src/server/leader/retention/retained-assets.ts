import { type KeepRule, keepRuleOf } from '../../../domain/retention/keep-rule.ts'
import { retentionState } from '../../../domain/retention/retention-state.table.ts'
import type { CurrentGraph } from '../current-graph.ts'
import type { KnownRows } from '../known-rows.ts'
import type { AssetToLookAt } from './expired-values.ts'

/** The assets that do not keep everything, with how far retention has come with each. */
export function retainedAssets(known: KnownRows & { readonly graph: CurrentGraph }): AssetToLookAt[] {
  const assets = [...known.graph.get().graph.assets.values()].flatMap((definition) => {
    const rule = keepRuleOf(definition)
    return rule === undefined ? [] : [{ key: definition.asset_key, rule }]
  })
  return assets
    .map(({ key, rule }) => ({ key, rule, after: passedBy(known, key, rule) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
}

/** By another rule, other values are kept: then everything is looked at again. */
function passedBy(known: KnownRows, key: string, { versions, days }: KeepRule): string {
  const state = known.rows().hot(retentionState).get(key)
  return state?.versions === versions && state.days === days ? state.passed_event_id : ''
}
