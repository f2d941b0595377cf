import { PAGE_ENTRIES } from '../../src/engine/manifest/page-list.ts'
import { FILES_PER_LEVEL } from '../../src/engine/publish/merge-levels.ts'
import { MINUTE_MS } from '../../src/lib/time.ts'
import { reportFact, runFacts, tickFact } from '../../src/testing/facts.ts'
import { paths, Workspace } from './workspace.ts'

/**
 * A small workspace that has a file of every kind: unfinished work in a base, deltas with changed rows and removed keys,
 * sorted files of two levels, history, recorded order, several manifests, and with `paged` also pages of both lists.
 */
export async function fullState(options: { paged: boolean }): Promise<Workspace> {
  const workspace = new Workspace()
  // With pages, every base closes what it sealed as an entry of its own; without, entries are merged.
  const compactor = await workspace.compactor(options.paged ? { history: { full_rows: 1 } } : {})
  const bases = options.paged ? PAGE_ENTRIES + 2 : FILES_PER_LEVEL + 1
  for (let i = 0; i < bases; i++) {
    await workspace.append(...runFacts(`r${i}`, { tasks: 0 }).batches[0]!)
    if (i % 4 === 0 || !options.paged) await workspace.append(reportFact(`report-${i}`), tickFact('s', workspace.clock.now()))
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
  }
  const { batches } = runFacts('unfinished', { tasks: 2 })
  await workspace.append(...batches.slice(0, 2).flat())
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  workspace.clock.pass(MINUTE_MS)
  await workspace.collect(0)
  for (const batch of batches.slice(2, 6)) {
    await workspace.append(...batch, reportFact(`l0-${workspace.clock.now()}`))
    await compactor.catchUp()
    await compactor.publish({ kind: 'delta' })
  }
  return workspace
}

/** Every kind of file that `verify` answers for, by what its path looks like. */
export const kinds: Readonly<Record<string, RegExp>> = {
  segment: /\/ledger\//,
  'newest manifest and older ones': /\/manifests\/orchestration\/\d/,
  'copy of the manifest': /manifest\.json$/,
  base: /\/base\//,
  delta: /\/l0\//,
  'removed keys': /\/removed\//,
  'sorted file': /\/runs\/\d+-\d+-0\.parquet$/,
  'merged sorted file': /\/runs\/\d+-\d+-1\.parquet$/,
  history: /\/history\//,
  'recorded order': /\/_order\//,
  'page of the order': /\/_order_pages\//,
  'page of the history': /\/_history_pages\//,
}

export async function filesOf(workspace: Workspace, kind: string): Promise<string[]> {
  return (await workspace.paths(paths.root)).filter((path) => kinds[kind]!.test(path))
}
