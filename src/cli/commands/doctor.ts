import { statfs } from 'node:fs/promises'
import { resolve } from 'node:path'
import { isServoError } from '../../lib/error.ts'
import { applyEnvFiles } from '../../sdk/project/env-files.ts'
import { alignRows } from '../columns.ts'
import { clockFindings, newestFiles } from '../doctor/clock.ts'
import { examine, type Finding, problem, shownLines, warning } from '../doctor/finding.ts'
import { leaderFindings } from '../doctor/leader.ts'
import { diskFinding, nodeFinding } from '../doctor/machine.ts'
import { projectFindings } from '../doctor/project.ts'
import { storeFindings } from '../doctor/store.ts'
import { ownPackage } from '../init/own-package.ts'
import { colours, print, printJson, screenWidth, shortly } from '../output.ts'
import { componentsOf, type ProjectFlags, projectFolder } from '../project.ts'

/** Says what stands in the way of Servo on this machine and in this project. Nothing is written. */
export async function doctorCommand(flags: ProjectFlags, now: Date): Promise<void> {
  const found = [
    ...(await examine('node', async () => [nodeFinding(process.version, ownPackage())])),
    ...(await examineProject(flags, now)),
  ]
  const problems = found.filter(({ level }) => level === 'problem').length
  if (problems > 0) process.exitCode = 1
  if (flags.json) return printJson({ ok: problems === 0, findings: found })
  // The words of a finding are not cut but go on in the next line.
  const room = Math.max(LEAST_ROOM, screenWidth() - TEXT_AT)
  const rows = found.flatMap(({ level, area, message, hint }) =>
    shownLines({ message, hint }, room).map((text, i) => [
      { text: i === 0 ? level : '', paint: PAINTS[level] },
      { text: i === 0 ? area : '' },
      { text },
    ]),
  )
  for (const line of alignRows(rows)) print(line)
}

/** Where the words begin: behind the longest level and the longest area. */
const TEXT_AT = 20
const LEAST_ROOM = 30

const PAINTS = { ok: colours.green, warning: colours.yellow, problem: colours.red } as const

async function examineProject(flags: ProjectFlags, now: Date): Promise<Finding[]> {
  const folder = folderOf(flags)
  const place = typeof folder === 'string' ? folder : resolve('.')
  const disk = examine('disk', async () => [diskFinding(place, await statfs(place))])
  if (typeof folder !== 'string') return [folder, ...(await disk)]
  const environment = await examine('variables', async () => {
    applyEnvFiles(folder)
    return []
  })
  // Settings of the environment may be wrong too.
  const withComponents = async (check: (components: Awaited<ReturnType<typeof componentsOf>>) => Promise<readonly Finding[]>) =>
    await check(await componentsOf(folder))
  const all = await Promise.all([
    examine('project', () => projectFindings(folder, now)),
    environment,
    examine('store', () => withComponents(storeFindings)),
    examine('clock', () => withComponents(async (components) => clockFindings(await newestFiles(components), now.getTime()))),
    disk,
    examine('leader', () => withComponents(leaderFindings)),
  ])
  return all.flat()
}

/** The folder of the project, or what is said without one: only who names a folder is wrong about it. */
function folderOf(flags: ProjectFlags): string | Finding {
  try {
    return projectFolder(flags)
  } catch (error) {
    if (!isServoError(error, 'not_found')) throw error
    const { message, hint = '' } = error
    return flags.project === undefined ? warning('project', shortly(message), hint) : problem('project', shortly(message), hint)
  }
}
