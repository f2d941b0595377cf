import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import type { ProjectManifest } from '../../contract/project-manifest.ts'
import { ServoError } from '../../lib/error.ts'
import type { Components } from '../components.ts'
import { CurrentGraph } from '../leader/current-graph.ts'
import { durableState } from '../leader/durable-state.ts'
import { declare } from './declare.ts'
import { knowledgeOf } from './knowledge.ts'
import { workspaceApi } from './workspace.ts'

/**
 * A workspace without a leader, for reading: the published tables, with everything folded that happened since. With a project,
 * questions about its code are answered as if a server had loaded it; nothing of that is recorded.
 */
export async function readWorkspace(components: Components, project?: ProjectManifest): Promise<WorkspaceApi> {
  const { clock } = components
  const readable = await durableState(components)
  const { state } = readable
  if (project !== undefined) declare(components, state, project)
  const graph = new CurrentGraph(
    () => state,
    () => clock.now(),
  )
  const known = knowledgeOf(components, { graph, readable, project, submit: () => Promise.reject(needsLeader()) })
  return workspaceApi(known, {
    runIds: () => {
      throw needsLeader()
    },
  })
}

const needsLeader = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server is running this project', { hint: 'Start one: servo dev' })
