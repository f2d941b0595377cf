import type { WorkspaceApi } from '../api/workspace-contract.ts'
import { orchestration } from '../domain/index.ts'
import { Loop } from '../engine/loop/loop.ts'
import type { HeldLease } from '../ports/lease.ts'
import type { Components } from './components.ts'
import { CurrentGraph } from './leader/current-graph.ts'
import { loadSecrets, secretsReplaced } from './leader/load-secrets.ts'
import { knowledgeOf } from './workspace/knowledge.ts'
import { workspaceApi } from './workspace/workspace.ts'

/**
 * Leads for as long as one command takes: it folds the ledger, writes the facts of the command, and decides nothing. The next
 * server makes the decisions.
 */
export async function leadBriefly<T>(
  components: Components,
  lease: HeldLease,
  name: string,
  work: (api: WorkspaceApi) => Promise<T>,
  onTrouble?: (error: unknown) => void,
): Promise<T> {
  const { clock } = components
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
    const { secrets, made } = await loadSecrets(components)
    if (made === 'new') onTrouble?.(secretsReplaced())
    const { run_ids } = secrets
    const known = knowledgeOf(components, {
      graph,
      readable: loop.compactor,
      submit: (events) => loop.submit(events),
    })
    return await work(workspaceApi(known, { runIds: () => run_ids }))
  } finally {
    await loop.idle()
    // The command is in the ledger, so it is done even if this fails; but no other process may write tables for a while.
    await loop.compactor.publish().catch(() => undefined)
    await loop.close()
  }
}
