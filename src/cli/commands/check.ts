import { isServoError } from '../../lib/error.ts'
import { counted } from '../../lib/text/counted.ts'
import type { ProjectCheck } from '../../sdk/check/project-check.ts'
import { allProblems } from '../check/all-problems.ts'
import { checkTypes } from '../check/compiler.ts'
import { loadAndCheck } from '../check/load-and-check.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { findProject, type ProjectFlags } from '../project.ts'
import { problemLines } from '../show-problems.ts'

/** Says everything that is wrong with a project without running it. Nothing is written. */
export async function checkCommand(flags: ProjectFlags, now: Date): Promise<void> {
  const projectDir = findProject(flags)
  const [types, project] = await Promise.all([checkTypes(projectDir), loadAndCheck(projectDir, now).catch(notLoaded)])
  const problems = allProblems(types.problems, project.problems)
  const unchecked = [...(types.unchecked === undefined ? [] : [types.unchecked]), ...project.unchecked]
  if (problems.length > 0) process.exitCode = 1
  if (flags.json)
    return printJson({
      ok: problems.length === 0,
      problems,
      checked: { typescript: types.version ?? null, ...project.counts },
      unchecked,
    })

  for (const line of problemLines(problems, colours)) print(line)
  for (const what of unchecked) print(`${colours.yellow('not checked:')} ${printable(what)}`)
  const { assets, queries, schedules, sensors } = project.counts
  const parts = [
    counted(assets, 'asset'),
    counted(queries, 'query', 'queries'),
    counted(schedules, 'schedule'),
    counted(sensors, 'sensor'),
  ]
  const compiler = types.version === undefined ? [] : [`types with TypeScript ${types.version}`]
  const outcome = problems.length === 0 ? colours.green('ok') : colours.red(counted(problems.length, 'problem'))
  print(`${outcome}  checked ${[...parts, ...compiler].join(', ')}`)
}

/** Code that cannot even be loaded is a problem among others. */
function notLoaded(error: unknown): ProjectCheck {
  if (!isServoError(error, 'invalid')) throw error
  const { code, message, hint } = error
  return { problems: [{ code, message, hint }], counts: { assets: 0, queries: 0, schedules: 0, sensors: 0 }, unchecked: [] }
}
