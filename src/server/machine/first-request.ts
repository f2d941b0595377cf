import type { AcceptedRun, RunsApi } from '../../api/run-contract.ts'
import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { isServoError } from '../../lib/error.ts'
import type { LocalComponents } from '../components.ts'
import { readWorkspace } from '../workspace/reader.ts'
import { loadManifest } from './load-manifest.ts'

/**
 * Puts the first request of a project to its code alone, before there is a folder for its state: a request that is refused leaves
 * nothing behind. Throws what the project would refuse it with; returns the problems of a project that cannot be loaded.
 */
export async function tryFirstRequest(
  projectDir: string,
  components: LocalComponents,
  request: (runs: RunsApi) => Promise<AcceptedRun>,
): Promise<readonly ProjectProblem[]> {
  const loaded = await loadManifest(projectDir, components)
  if (!loaded.ok) return loaded.problems
  const { runs } = await readWorkspace(components, loaded.manifest)
  try {
    await request(runs)
  } catch (error) {
    // All that is missing is a leader, which this process becomes next.
    if (!isServoError(error, 'unavailable') || error.code !== 'no_server') throw error
  }
  return []
}
