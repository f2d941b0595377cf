import type { ProjectManifest } from '../../contract/definition.ts'
import { orchestration } from '../../domain/index.ts'
import { View } from '../../engine/view.ts'
import { ServoError } from '../../lib/error.ts'
import type { Components } from '../components.ts'
import { CurrentGraph } from '../leader/current-graph.ts'
import { declare } from './declare.ts'
import { type WorkspaceApi, workspaceApi } from './workspace.ts'

/** Nobody else is waiting: better slow than wrong. */
const PATIENT = { maxEvents: 5_000_000, maxTimeMs: 60_000 }

/**
 * A workspace that nobody leads, as far as it can be read: the published tables with everything folded that happened since. With
 * a project, questions about its code are answered as if it had been loaded by a server; that is not written down.
 */
export async function readWorkspace(components: Components, project?: ProjectManifest): Promise<WorkspaceApi> {
  const { scope, store, clock, ulid, sql } = components
  const view = await View.open({ store, scope, registry: orchestration, clock })
  const { state, complete } = await view.fresh(PATIENT)
  if (!complete) {
    throw new ServoError(
      'unavailable',
      'tail_too_long',
      'more has happened since the tables were written than can be read here',
      { hint: 'Start the project once (servo dev), or run servo verify to see whether something is damaged.' },
    )
  }
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
      coldRows: (table) => view.coldRows(table, state),
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
