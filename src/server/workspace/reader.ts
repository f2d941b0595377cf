import type { ProjectManifest } from '../../contract/definition.ts'
import { ServoError } from '../../lib/error.ts'
import type { Components } from '../components.ts'
import { CurrentGraph } from '../leader/current-graph.ts'
import { durableState } from '../leader/durable-state.ts'
import { declare } from './declare.ts'
import { type WorkspaceApi, workspaceApi } from './workspace.ts'

/**
 * A workspace that nobody leads, as far as it can be read: the published tables with everything folded that happened since. With
 * a project, questions about its code are answered as if it had been loaded by a server; that is not written down.
 */
export async function readWorkspace(components: Components, project?: ProjectManifest): Promise<WorkspaceApi> {
  const { scope, store, clock, ulid, sql } = components
  const { state, coldRows } = await durableState(components)
  if (project !== undefined) declare(components, state, project)
  return workspaceApi(
    {
      scope,
      store,
      sql,
      graph: new CurrentGraph(
        () => state,
        () => clock.now(),
      ),
      rows: () => state,
      coldRows,
      now: () => clock.now(),
      mintId: ulid,
      submit: () => Promise.reject(needsLeader()),
    },
    {
      runIds: () => {
        throw needsLeader()
      },
    },
  )
}

const needsLeader = (): ServoError =>
  new ServoError('unavailable', 'no_server', 'no server runs this project', { hint: 'Start one: servo dev' })
