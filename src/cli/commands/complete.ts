import { existsSync } from 'node:fs'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import { ASKED, type Asked } from '../completion/places.ts'
import { clientOf } from '../find-leader.ts'
import { print, printable } from '../output.ts'
import { componentsOf, findProject, servoDirOf } from '../project.ts'

/** Whoever pressed Tab has typed on by then. */
const MAX_MS = 3_000
/** More than anyone reads, and each is the most that a page has. */
const MAX_ASSETS = 1_000
const MAX_PARTITIONS = 1_000
const MAX_RUNS = 100
const MAX_NAMES = 1_000

/** Prints a line for each word that may stand here. A shell asks this while a line is typed: whatever goes wrong, nothing is said. */
export async function completeCommand(kind: string, current: string, words: readonly string[]): Promise<void> {
  const limit = setTimeout(() => process.exit(), MAX_MS)
  try {
    const asked = ASKED.find((each) => each === kind)
    const found = asked === undefined ? [] : await candidates(asked, words)
    for (const each of found) if (each.startsWith(current) && printable(each) === each) print(each)
  } catch {
    // A line cannot be completed; that is all.
  } finally {
    clearTimeout(limit)
  }
}

async function candidates(kind: Asked, words: readonly string[]): Promise<readonly string[]> {
  const workspace = await workspaceOf(words)
  const { runs, assets, statuses } = workspace
  if (kind === 'run') return (await runs.list({ limit: MAX_RUNS })).map(({ run_id }) => run_id)
  const names = await automationNames(kind, workspace)
  // One that is named already is not meant again, and where one is enough, no other is either.
  if (names !== undefined)
    return !kind.endsWith('s') && names.some((name) => words.includes(name))
      ? []
      : names.filter((name) => !words.includes(name))
  const page = await assets.list({ select: [], limit: MAX_ASSETS, cursor: undefined })
  const keys = page.assets.map(({ asset_key }) => asset_key)
  const named = kind === 'assets' ? undefined : keys.find((key) => words.includes(key))
  if (named === undefined) return kind === 'partition' ? [] : keys
  if (kind === 'asset') return []
  const { partitions } = await statuses.list({ select: named, order: 'newest', limit: MAX_PARTITIONS })
  return partitions.map(({ partition_key }) => partition_key).filter((key) => key !== '')
}

/** The names of schedules or sensors, or the ids of backfills; undefined for anything else. */
async function automationNames(
  kind: Asked,
  { schedules, sensors, backfills }: WorkspaceApi,
): Promise<readonly string[] | undefined> {
  const page = { limit: MAX_NAMES }
  if (kind === 'schedule' || kind === 'schedules')
    return (await schedules.list(page)).schedules.map(({ definition }) => definition.schedule_name)
  if (kind === 'sensor' || kind === 'sensors')
    return (await sensors.list(page)).sensors.map(({ definition }) => definition.sensor_name)
  if (kind === 'backfill') return (await backfills.list(page)).backfills.map(({ backfill_id }) => backfill_id)
  return undefined
}

/** The server if it answers, or else the state on disk. The code of the project is not loaded: that takes too long, and may print. */
async function workspaceOf(words: readonly string[]): Promise<WorkspaceApi> {
  const project = flagIn(words, '--project')
  const projectDir = findProject(project === undefined ? {} : { project })
  if (!existsSync(servoDirOf(projectDir))) throw new Error('nothing is on record yet')
  const components = await componentsOf(projectDir)
  const leader = await components.lease.leader()
  if (leader !== undefined && leader.address !== null) {
    const client = await clientOf(components, leader.address)
    if (await client.isThere(leader.name)) return client
  }
  return await (await import('../../server/workspace/reader.ts')).readWorkspace(components)
}

function flagIn(words: readonly string[], flag: string): string | undefined {
  const at = words.indexOf(flag)
  return at < 0 ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1) : words[at + 1]
}
