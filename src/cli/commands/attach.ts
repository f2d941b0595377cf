import { join } from 'node:path'
import { orchestration } from '../../domain/index.ts'
import { Paths } from '../../engine/paths.ts'
import { attachScript } from '../../engine/sql/attach-script.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { print, printable, printJson } from '../output.ts'

/** Writes the script by which the DuckDB command line shows the tables. It is the same for every publish. */
export async function attachCommand(folder: string | undefined, flags: WorkspaceFlags): Promise<void> {
  const { dir, store, scope } = await openWorkspace(folder, flags)
  const paths = new Paths(scope)
  await store.put(paths.attachScript, Buffer.from(attachScript(orchestration)))
  const root = join(dir, paths.root)
  if (flags.json) return printJson({ path: join(dir, paths.attachScript), folder: root })
  print(`wrote ${printable(join(dir, paths.attachScript))}`)
  print(`run   cd ${printable(quoteForShell(root))} && duckdb -init attach.sql`)
}

/** For a shell. */
const quoteForShell = (text: string): string => (/^[\w./=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
