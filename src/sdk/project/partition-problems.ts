import type { AssetDefinitionInput, ProjectManifestInput, ProjectProblem } from '../../contract/project-manifest.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import { checkMapping } from '../../partitions/mappings/check-mapping.ts'
import { defaultMapping } from '../../partitions/mappings/default-mapping.ts'
import type { PartitionMapping } from '../../partitions/mappings/mapping.ts'

/** Dependencies between partitions that cannot be meant: reported when the project is loaded, and not by the first run. */
export function partitionProblems({ assets }: ProjectManifestInput): ProjectProblem[] {
  const byKey = new Map(assets.map((asset) => [asset.asset_key, asset]))
  return assets.flatMap((asset) =>
    dependenciesOf(asset).flatMap(({ asset_key, mapping }) => {
      const upstream = byKey.get(asset_key)
      return upstream === undefined ? [] : problemsBetween(asset, upstream, mapping as PartitionMapping | null | undefined)
    }),
  )
}

function dependenciesOf({ inputs = {}, deps = [] }: AssetDefinitionInput) {
  return [...Object.values(inputs), ...deps]
}

function problemsBetween(
  asset: AssetDefinitionInput,
  upstream: AssetDefinitionInput,
  said: PartitionMapping | null | undefined,
): ProjectProblem[] {
  const [below, above] = [asset, upstream].map((one) => (one.partitions ?? undefined) as PartitionDefinition | undefined)
  const guessed = said ? undefined : defaultMapping(below, above, [asset.asset_key, upstream.asset_key])
  const mapping = said ?? guessed?.mapping
  const found =
    mapping === undefined
      ? [{ code: 'mapping_missing', message: guessed?.reason ?? '', hint: NO_GUESS }]
      : checkMapping(mapping, below, above)
  return found.map(({ code, message, hint }) => ({
    code,
    message: message.startsWith(`${asset.asset_key} is `)
      ? message
      : `${asset.asset_key} depends on ${upstream.asset_key}: ${message}`,
    hint,
    file: asset.file,
    line: asset.line,
  }))
}

const NO_GUESS =
  'Say which partitions of the upstream asset you mean, such as orders.all(), orders.last() or orders.map({ … }), or give both assets the same partitions.'
