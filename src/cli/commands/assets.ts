import type { AssetSummary } from '../../api/asset-contract.ts'
import { ask } from '../ask-and-tell.ts'
import { dotText, mermaidText, treeLines } from '../asset-graph.ts'
import type { Cell } from '../columns.ts'
import { colours, headsOf, print, printable, printJson, printTable } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { noAssets, partitionsText, shownAsset } from '../show-asset.ts'
import { firstLine } from '../show-run.ts'

/** Page size of the questions to the server. */
const PAGE = 1_000

export async function listAssets(select: readonly string[], flags: ProjectFlags): Promise<void> {
  const found: AssetSummary[] = []
  await ask(
    flags,
    async ({ assets }) => {
      let cursor: string | undefined
      do {
        const page = await assets.list({ select, limit: PAGE, cursor })
        found.push(...page.assets)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    },
    { ofCode: true },
  )
  if (flags.json) printJson(found)
  else if (found.length > 0) printTable(LIST_HEADS, found.map(assetCells))
  else print(noAssets(select))
}

const LIST_HEADS = headsOf(['asset', 'kind', 'group', 'partitions', 'upstream', 'description'], ['upstream'])

function assetCells(asset: AssetSummary): Cell[] {
  return [
    { text: printable(asset.asset_key) },
    { text: asset.kind, paint: colours.dim },
    { text: printable(asset.group) },
    { text: printable(partitionsText(asset.partitions)) },
    { text: asset.upstream === 0 ? '' : String(asset.upstream), right: true },
    { text: printable(firstLine(asset.description ?? '')), paint: colours.dim },
  ]
}

export async function showAsset(key: string, flags: ProjectFlags): Promise<void> {
  const detail = await ask(flags, ({ assets }) => assets.get(key), { ofCode: true })
  if (flags.json) printJson(detail)
  else print(shownAsset(detail).join('\n'))
}

export async function showGraph(
  select: readonly string[],
  flags: ProjectFlags & { format?: 'dot' | 'mermaid' },
): Promise<void> {
  const view = await ask(flags, ({ assets }) => assets.graph(select), { ofCode: true })
  if (flags.json) printJson(view)
  else if (flags.format === 'dot') print(dotText(view))
  else if (flags.format === 'mermaid') print(mermaidText(view))
  else if (view.nodes.length === 0) print(noAssets(select))
  else print(treeLines(view).join('\n'))
}
