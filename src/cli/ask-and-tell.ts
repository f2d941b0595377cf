import { checkStateFolder } from '../adapters/fs/state-folder.ts'
import type { WorkspaceApi } from '../api/workspace-contract.ts'
import type { ProjectManifest } from '../contract/project-manifest.ts'
import { isServoError, ServoError } from '../lib/error.ts'
import type { LocalComponents } from '../server/components.ts'
import { findLeader, unlessSilent, withLeader } from './find-leader.ts'
import { note, warn } from './output.ts'
import { componentsOf, findProject, type ProjectFlags, refuseEmpty, servoDirOf } from './project.ts'
import { remoteServer } from './remote/remote-server.ts'
import { firstLine } from './show-run.ts'

/** Questions can be answered from the folder too, so a server that takes long to start is not waited for. */
const ASK_WAIT_MS = 15_000

/** The leader of the project answers, is silent, or does not exist. */
export type Leadership = 'answers' | 'silent' | 'none'

/**
 * Asks the leader of the project or, without a leader, reads the folder. With `ofCode` the answer depends on the code, so without
 * a leader the project is loaded first. A question about what would run, `ofNext`, makes sense for a project that never ran, and none for one
 * that cannot be loaded.
 */
export async function ask<T>(
  flags: ProjectFlags,
  question: (api: WorkspaceApi, leadership: Leadership) => Promise<T>,
  { ofNext = false, ofCode = ofNext }: { ofCode?: boolean; ofNext?: boolean } = {},
): Promise<T> {
  const remote = remoteServer(flags)
  if (remote !== undefined) return await unlessNotLoaded(flags, remote, 'answers', () => question(remote, 'answers'))
  const projectDir = findProject(flags)
  const components = await componentsOf(projectDir)
  let isSilent = false
  const leader = await findLeader(components, { maxWaitMs: ASK_WAIT_MS }).catch((error: unknown) => {
    unlessSilent(error)
    isSilent = true
    note('the server does not answer; reading the state from disk')
    return undefined
  })
  if (leader !== undefined) {
    if (ofCode) await refuseNeverLoaded(leader)
    return await unlessNotLoaded(flags, leader, 'answers', () => question(leader, 'answers'))
  }
  // What the code declares can be told before anything has run.
  if (!ofCode) refuseEmpty(servoDirOf(projectDir))
  const { readWorkspace } = await import('../server/workspace/reader.ts')
  const code = ofCode ? await loadCode(projectDir, components) : undefined
  if (typeof code === 'string' && ofNext) throw notLoaded(code)
  const workspace = await readWorkspace(components, typeof code === 'string' ? undefined : code)
  if (typeof code === 'string') {
    // A run that was refused leaves a state in which nothing was ever declared.
    if (!(await hasAssets(workspace))) throw notLoaded(code)
    sayNotLoaded(code)
  }
  const leadership = isSilent ? 'silent' : 'none'
  if (ofCode) return await question(workspace, leadership)
  return await unlessNotLoaded(flags, workspace, leadership, () => question(workspace, leadership))
}

const hasAssets = async ({ assets }: WorkspaceApi): Promise<boolean> =>
  (await assets.list({ select: [], limit: 1, cursor: undefined })).assets.length > 0

/** What is not found may be declared in a project that cannot be loaded: then that is said too. */
async function unlessNotLoaded<T>(
  flags: ProjectFlags,
  api: WorkspaceApi,
  leader: Leadership,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (isServoError(error, 'not_found')) await isNotLoaded(flags, api, leader)
    throw error
  }
}

/**
 * Says so if the project cannot be loaded, and refuses one that never could. Call when nothing is found: what the project declares is on
 * record once it was loaded.
 */
export async function isNotLoaded(flags: ProjectFlags, api: WorkspaceApi, leader: Leadership): Promise<boolean> {
  if (leader === 'answers') {
    const outage = await refuseNeverLoaded(api)
    if (outage !== null) note(`${outage}. This shows the last version that loaded.`)
    return outage !== null
  }
  const projectDir = findProject(flags)
  const code = await loadCode(projectDir, await componentsOf(projectDir))
  if (typeof code !== 'string') return false
  if (!(await hasAssets(api))) throw notLoaded(code)
  sayNotLoaded(code)
  return true
}

/** Refuses a question to a server that never had anything to answer with. Returns why code cannot be evaluated now, if it cannot. */
async function refuseNeverLoaded(leader: WorkspaceApi): Promise<string | null> {
  const { outage } = await leader.schedules.automation()
  if (outage !== null && !(await hasAssets(leader))) throw new ServoError('invalid', 'not_loaded', outage, { hint: CORRECT_IT })
  return outage
}

interface Telling {
  /** The command is about the code: without a leader the project is loaded and recorded first, as `servo run` does. */
  readonly ofCode?: boolean
  /** Why the command makes no sense without a leader. */
  readonly needsServer?: () => ServoError
}

/** Gives a command to the leader of the project or, without one, leads for as long as the command takes. */
export async function tell<T>(
  flags: ProjectFlags,
  command: (api: WorkspaceApi, isLive: boolean) => Promise<T>,
  { ofCode = false, needsServer }: Telling = {},
): Promise<T> {
  const remote = remoteServer(flags)
  if (remote !== undefined) return await command(remote, true)
  const projectDir = findProject(flags)
  if (!ofCode) refuseEmpty(servoDirOf(projectDir))
  const components = await componentsOf(projectDir)
  if (!checkStateFolder(components.servoDir)) {
    // A command that is refused leaves nothing behind, and whoever leads makes a folder.
    if (needsServer !== undefined) throw needsServer()
    const code = await loadCode(projectDir, components)
    if (typeof code === 'string') throw notLoaded(code)
    const { readWorkspace } = await import('../server/workspace/reader.ts')
    await command(await readWorkspace(components, code), false).catch(unlessNoServer)
  }
  const asked = await withLeader(
    components,
    (leader) =>
      command(leader, true).catch(async (error: unknown) => {
        // It may be that nothing is known because nothing was ever loaded.
        if (ofCode) await refuseNeverLoaded(leader)
        throw error
      }),
    async (lease, name) => {
      try {
        if (needsServer !== undefined) throw needsServer()
        const code = ofCode ? await loadCode(projectDir, components) : undefined
        if (typeof code === 'string') throw notLoaded(code)
        const { leadBriefly } = await import('../server/brief-leader.ts')
        return await leadBriefly(components, { lease, name, project: code, onTrouble: warn }, (api) => command(api, false))
      } finally {
        await lease.release()
      }
    },
  )
  return 'doneHere' in asked ? asked.doneHere : asked.answer
}

/** All that is missing is a leader, which this process becomes next. */
function unlessNoServer(error: unknown): void {
  if (!isServoError(error, 'unavailable') || error.code !== 'no_server') throw error
}

const notLoaded = (why: string): ServoError =>
  new ServoError('invalid', 'not_loaded', `the project cannot be loaded: ${why}`, {
    hint: CORRECT_IT,
  })

const CORRECT_IT = 'Correct that first. servo check lists every problem.'

const sayNotLoaded = (why: string): void =>
  note(`the project cannot be loaded (${why}); this shows the last version that loaded`)

/** The project as its code declares it now, or why it cannot be loaded. */
async function loadCode(projectDir: string, components: LocalComponents): Promise<ProjectManifest | string> {
  const { loadManifest } = await import('../server/machine/load-manifest.ts')
  const loaded = await loadManifest(projectDir, components)
  if (loaded.ok) return loaded.manifest
  const [{ file, line, message } = { file: undefined, line: undefined, message: '' }] = loaded.problems
  const place = [file, line].filter((part) => part != null).join(':')
  return [place, firstLine(message)].filter(Boolean).join(' ')
}
