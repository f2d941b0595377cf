import type { AssetSummary } from '../../api/asset-contract.ts'
import { dotText, mermaidText, treeLines } from '../asset-graph.ts'
import { aligned, type Cell } from '../columns.ts'
import { openAssets } from '../open-assets.ts'
import { colours, print, printable, printJson } from '../output.ts'
import type { ProjectFlags } from '../project.ts'
import { partitionsText, shownAsset } from '../show-asset.ts'

/** As many as are asked for at a time. */
const PAGE = 5_000

export async function listAssets(select: readonly string[], flags: ProjectFlags): Promise<void> {
  const service = await openAssets(flags)
  const found: AssetSummary[] = []
  let cursor: string | undefined
  do {
    const page = await service.list({ select, limit: PAGE, cursor })
    found.push(...page.assets)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  if (flags.json) printJson(found)
  else if (found.length > 0)
    print(
      aligned([LIST_HEAD, ...found.map(listed)])
        .map(fitting)
        .join('\n'),
    )
  else print(nothing(select))
}

const LIST_HEAD: readonly Cell[] = ['asset', 'kind', 'group', 'partitions', 'upstream', 'description'].map((text) => ({
  text,
  paint: colours.dim,
  right: text === 'upstream',
}))

function listed(asset: AssetSummary): Cell[] {
  return [
    { text: printable(asset.asset_key) },
    { text: asset.kind, paint: colours.dim },
    { text: printable(asset.group) },
    { text: printable(partitionsText(asset.partitions)) },
    { text: asset.upstream === 0 ? '' : String(asset.upstream), right: true },
    { text: printable(firstLine(asset.description ?? '')), paint: colours.dim },
  ]
}

const firstLine = (text: string): string => text.split('\n', 1)[0] as string

/** On a screen a line is as wide as that; elsewhere nothing is cut. With colours it is left to the terminal to fold it. */
function fitting(text: string): string {
  const { isTTY, columns } = process.stdout
  if (!isTTY || colours.isColorSupported || text.length <= columns) return text
  return `${text.slice(0, columns - 1)}…`
}

const nothing = (select: readonly string[]): string =>
  select.length === 0 ? 'the project has no assets' : `no asset is selected by ${printable(select.join(' '))}`

export async function showAsset(key: string, flags: ProjectFlags): Promise<void> {
  const detail = await (await openAssets(flags)).get(key)
  if (flags.json) printJson(detail)
  else print(shownAsset(detail).join('\n'))
}

export async function showGraph(
  select: readonly string[],
  flags: ProjectFlags & { format?: 'dot' | 'mermaid' },
): Promise<void> {
  const view = await (await openAssets(flags)).graph(select)
  if (flags.json) printJson(view)
  else if (flags.format === 'dot') print(dotText(view))
  else if (flags.format === 'mermaid') print(mermaidText(view))
  else if (view.nodes.length === 0) print(nothing(select))
  else print(treeLines(view).join('\n'))
}
