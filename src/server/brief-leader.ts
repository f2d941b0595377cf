import type { WorkspaceApi } from '../api/workspace-contract.ts'
import type { ProjectManifest } from '../contract/project-manifest.ts'
import { AssetsDefined } from '../domain/assets/assets-defined.event.ts'
import { orchestration } from '../domain/index.ts'
import { Loop } from '../engine/loop/loop.ts'
import type { Manifest } from '../engine/manifest/manifest.ts'
import type { Compactor } from '../engine/publish/compactor.ts'
import { BRIEF_COLLECTION, collectGarbage, isCollectionDue } from '../engine/publish/garbage.ts'
import { newEvent } from '../model/event.ts'
import type { HeldLease } from '../ports/lease.ts'
import type { Components } from './components.ts'
import { CurrentGraph } from './leader/current-graph.ts'
import { loadSecrets, secretsReplaced } from './leader/load-secrets.ts'
import { declaredParts } from './workspace/declare.ts'
import { knowledgeOf } from './workspace/knowledge.ts'
import { workspaceApi } from './workspace/workspace.ts'

interface BriefLead {
  readonly lease: HeldLease
  readonly name: string
  /** The project as its code is now, for a command that is about it: what changed in its assets is recorded first. */
  readonly project?: ProjectManifest | undefined
  readonly onTrouble?: (error: unknown) => void
}

/**
 * Leads for as long as one command takes: it folds the ledger, writes the facts of the command, and decides nothing. The next
 * server makes the decisions.
 */
export async function leadBriefly<T>(
  components: Components,
  { lease, name, project, onTrouble }: BriefLead,
  work: (api: WorkspaceApi) => Promise<T>,
): Promise<T> {
  const { clock, ulid } = components
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
  const found = loop.compactor.manifest
  try {
    const { secrets, made } = await loadSecrets(components)
    if (made === 'new') onTrouble?.(secretsReplaced())
    const { run_ids } = secrets
    const known = knowledgeOf(components, {
      graph,
      readable: loop.compactor,
      submit: (events) => loop.submit(events),
    })
    if (project !== undefined) {
      const parts = declaredParts(loop.compactor.state, project, clock.now(), ulid)
      if (parts.length > 0) await loop.submit(parts.map((part) => newEvent(AssetsDefined, part)))
    }
    return await work(workspaceApi(known, { runIds: () => run_ids }))
  } finally {
    await loop.idle()
    // The command is in the ledger, so it is done even if this fails; but no other process may write tables for a while.
    await publishAndCollect(components, loop.compactor, found, lease).catch(() => undefined)
    await loop.close()
    await components.settle?.()
  }
}

async function publishAndCollect(
  { store, scope, clock }: Components,
  compactor: Compactor,
  found: Manifest,
  lease: HeldLease,
): Promise<void> {
  await compactor.publish()
  if (!isCollectionDue(found, compactor.manifest, clock.now())) return
  await collectGarbage({ store, scope, clock, registry: orchestration, lease, limit: BRIEF_COLLECTION })
}
