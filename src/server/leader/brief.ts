import { orchestration } from '../../domain/index.ts'
import { Loop } from '../../engine/loop.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { Components } from '../components.ts'
import { type WorkspaceApi, workspaceApi } from '../workspace/workspace.ts'
import { CurrentGraph } from './current-graph.ts'
import { loadSecrets } from './load-secrets.ts'

/** So many segments that no table shows yet cost the next start more than writing the tables costs now. */
const PUBLISH_AT_SEGMENTS = 100

/**
 * Leads for as long as one command takes: it folds what is there, writes what it was asked to, and decides nothing. What follows
 * from that is decided by the next leader that stays.
 */
export async function leadBriefly<T>(
  components: Components,
  lease: HeldLease,
  name: string,
  work: (api: WorkspaceApi) => Promise<T>,
): Promise<T> {
  const { scope, store, clock, ulid, sql } = components
  const graph: CurrentGraph = new CurrentGraph(
    () => loop.compactor.state,
    () => clock.now(),
  )
  const loop: Loop = await Loop.open({
    ...components,
    registry: orchestration,
    name,
    lease,
    source: 'servo/cli',
    controllers: [],
    reactors: [graph.reactor],
  })
  try {
    const { run_ids } = await loadSecrets(components)
    const api = workspaceApi(
      {
        scope,
        store,
        sql,
        graph,
        rows: () => loop.compactor.state,
        coldRows: (table) => loop.compactor.coldRows(table),
        now: () => clock.now(),
        mintId: ulid,
        submit: (events) => loop.submit(events),
      },
      { runIds: () => run_ids },
    )
    return await work(api)
  } finally {
    await loop.settled()
    // Whoever wanted it written was told already; the tables are for the next start.
    if (loop.compactor.unpublished >= PUBLISH_AT_SEGMENTS) await loop.compactor.publish().catch(() => undefined)
    await loop.close()
  }
}
