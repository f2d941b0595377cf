import type { ProjectProblem } from '../../contract/project-manifest.ts'
import type { ProjectCheck } from '../../sdk/check/project-check.ts'
import { loadAndCheck } from '../check/load-and-check.ts'
import { type Finding, fine, problem } from './finding.ts'

/** A project that takes longer to load waits for something that does not come. */
const LOAD_MS = 60_000

/** Loads the project in a process of its own, and looks for what it lacks. */
export async function projectFindings(projectDir: string, now: Date): Promise<readonly Finding[]> {
  const limit = AbortSignal.timeout(LOAD_MS)
  try {
    return findingsOf(projectDir, await loadAndCheck(projectDir, now, limit))
  } catch (error) {
    if (!limit.aborted) throw error
    return [
      problem(
        'project',
        `${projectDir} did not load within ${LOAD_MS / 1_000} s`,
        'A module waits for something when it is imported. Move that into the body of an asset.',
      ),
    ]
  }
}

const OF_VARIABLES = ['missing_variable', 'bad_variable']

export function findingsOf(projectDir: string, { problems, counts }: ProjectCheck): Finding[] {
  const { assets, schedules, sensors } = counts
  const isOfVariable = ({ code }: ProjectProblem): boolean => OF_VARIABLES.includes(code)
  const [first, ...others] = problems.filter((each) => !isOfVariable(each))
  const project =
    first === undefined
      ? fine('project', `${projectDir}; assets: ${assets}, schedules: ${schedules}, sensors: ${sensors}`)
      : problem(
          'project',
          `${placed(first)}${others.length === 0 ? '' : ` (and ${others.length} more)`}`,
          'servo check lists every problem.',
        )
  const variables = problems.filter(isOfVariable).map((each) => problem('variables', placed(each), each.hint ?? undefined))
  // Nothing is known of a project that declares nothing.
  if (first === undefined && variables.length === 0)
    return [project, fine('variables', 'all variables of resources and webhooks are set')]
  return [project, ...variables]
}

const placed = ({ file, line, message }: ProjectProblem): string =>
  file ? `${[file, line].filter((part) => part != null).join(':')} ${message}` : message
