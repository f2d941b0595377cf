import type { ProjectProblem } from '../../contract/project-manifest.ts'
import { declarationOf } from '../declaration.ts'
import { misconfigured } from '../declare/resource.ts'
import { relativePath } from '../project/describe.ts'
import { envFileProblems } from '../project/env-files.ts'
import type { BrokenProject, DeclaredParts, Project } from '../project/project.ts'
import { checkQuery, isQueried } from './query-check.ts'
import { missingScript } from './script-check.ts'

/** Everything that is known about a project without running it. */
export interface ProjectCheck {
  readonly problems: readonly ProjectProblem[]
  readonly counts: { readonly assets: number; readonly schedules: number; readonly sensors: number; readonly queries: number }
  /** What could not be checked, and why. */
  readonly unchecked: readonly string[]
}

interface Surroundings {
  readonly root: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly nowMs: number
}

/** Checks what loading a project does not: its queries, the scripts of its commands, its env files, and the variables that it needs. */
export async function checkProject(project: Project | BrokenProject, surroundings: Surroundings): Promise<ProjectCheck> {
  const problems = [...envFileProblems(surroundings.root), ...('problems' in project ? project.problems : [])]
  const declared: DeclaredParts | undefined = 'problems' in project ? project.declared : project
  if (declared === undefined) return { problems, counts: { assets: 0, schedules: 0, sensors: 0, queries: 0 }, unchecked: [] }
  const { manifest, assets, resources } = declared
  const place = (value: object): { file?: string; line?: number } => placeOf(value, surroundings.root)
  const unchecked: string[] = []
  const queried = [...assets.values()].filter(isQueried)
  for (const asset of queried) {
    const found = await checkQuery(asset, surroundings.nowMs)
    if (found.outcome === 'unknown') unchecked.push(`the query of ${asset.key}: ${found.reason}`)
    if (found.outcome !== 'wrong') continue
    const { message, hint } = found
    problems.push({ code: 'bad_query', message: `${asset.key}: ${message}`, ...(hint && { hint }), ...place(asset) })
  }
  for (const asset of assets.values()) {
    const missing = missingScript(asset, surroundings.root)
    if (missing !== undefined) problems.push({ code: 'missing_file', ...missing, ...place(asset) })
  }
  for (const resource of resources.values()) {
    const error = await misconfigured(resource, surroundings.environment)
    if (error === undefined) continue
    problems.push({ code: error.code, message: error.message, ...(error.hint && { hint: error.hint }), ...place(resource) })
  }
  problems.push(...webhookProblems(manifest, surroundings))
  const { schedules = [], sensors = [] } = manifest
  const counts = { assets: assets.size, schedules: schedules.length, sensors: sensors.length, queries: queried.length }
  return { problems, counts, unchecked }
}

function placeOf(value: object, root: string): { file?: string; line?: number } {
  const { file, line } = declarationOf(value) ?? {}
  return file === undefined ? {} : { file: relativePath(root, file), ...(line !== undefined && { line }) }
}

/** One of the secrets of a webhook is enough: while a secret is replaced there are two. */
function webhookProblems({ sensors = [] }: DeclaredParts['manifest'], { environment }: Surroundings): ProjectProblem[] {
  return sensors.flatMap(({ name, config, file, line }) => {
    const secrets = config.type === 'webhook' ? (config.secrets ?? []) : []
    if (secrets.length === 0 || secrets.some((secret) => environment[secret])) return []
    return [
      {
        code: 'missing_variable',
        message: `sensor ${name} needs ${secrets.join(' or ')}`,
        hint: 'Set the variable in the environment of the server, for example in .env. Until then senders get 503.',
        ...(file && { file }),
        ...(line && { line }),
      },
    ]
  })
}
