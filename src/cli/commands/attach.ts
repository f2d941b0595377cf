import { join } from 'node:path'
import { orchestration } from '../../domain/index.ts'
import { allTables } from '../../engine/fold/state.ts'
import { Paths } from '../../engine/paths.ts'
import { ATTACH_NAMES, attachScript } from '../../engine/sql/attach-script.ts'
import { attachAssets, DEFINITIONS, viewedAssets } from '../../server/asset-views.ts'
import { rowsOfNewest } from '../../server/sql-rows.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { print, printable, printJson } from '../output.ts'

/** Writes the script by which the DuckDB command line shows the tables and assets. It need not be written again unless assets are added or removed. */
export async function attachCommand(folder: string | undefined, flags: WorkspaceFlags): Promise<void> {
  const { dir, store, scope } = await openWorkspace(folder, flags)
  const paths = new Paths(scope)
  const tables = allTables(orchestration).map(({ name }) => name)
  const assets = viewedAssets(await rowsOfNewest(dir, store, scope, DEFINITIONS), [...tables, ...ATTACH_NAMES])
  // A source is data of others, which lies relative to the project and not to this folder.
  const own = assets.filter(({ kind }) => kind !== 'source')
  await store.put(paths.attachScript, Buffer.from(`${attachScript(orchestration)}${attachAssets(own)}`))
  const root = join(dir, paths.root)
  if (flags.json) return printJson({ path: join(dir, paths.attachScript), folder: root })
  print(`wrote ${printable(join(dir, paths.attachScript))}`)
  print(`run   cd ${printable(quoteForShell(root))} && duckdb -init attach.sql`)
}

/** For a shell. */
const quoteForShell = (text: string): string => (/^[\w./=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
