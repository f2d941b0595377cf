import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { checkScope, type Scope } from '../engine/paths.ts'
import { listScopes } from '../engine/scopes.ts'
import { ServoError } from '../lib/error.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { folderStore } from '../server/components.ts'
import type { WorkspaceFlags } from './flags.ts'
import { projectFolder, refuseEmpty, servoDirOf } from './project.ts'

/**
 * The store of a folder, by default that of the project, and the workspace that is meant: the only one there is, or the one the flags
 * name.
 */
export async function openWorkspace(
  folder: string | undefined,
  flags: WorkspaceFlags,
): Promise<{ dir: string; store: ObjectStore; scope: Scope }> {
  const dir = folder ?? stateOfProject(flags)
  await checkFolder(dir)
  const store = folderStore(dir)
  const scopes = (await listScopes(store)).filter(
    (scope) =>
      (flags.tenant === undefined || scope.tenant_id === flags.tenant) &&
      (flags.workspace === undefined || scope.workspace_id === flags.workspace),
  )
  const [scope, ...others] = scopes
  if (scope === undefined) {
    // A name that no workspace can have is worth a better message.
    if (flags.tenant !== undefined && flags.workspace !== undefined)
      checkScope({ tenant_id: flags.tenant, workspace_id: flags.workspace })
    throw new ServoError('not_found', 'no_workspace', `workspace not found in ${dir}`, {
      hint: 'Check --tenant and --workspace. The folder has a folder tenant=…/workspace=… for each workspace.',
    })
  }
  if (others.length > 0) {
    const names = scopes.map(({ tenant_id, workspace_id }) => `--tenant ${tenant_id} --workspace ${workspace_id}`)
    throw new ServoError('invalid', 'which_workspace', `${dir} has ${scopes.length} workspaces`, {
      hint: `Choose one: ${names.join(', or ')}`,
    })
  }
  return { dir, store, scope }
}

function stateOfProject({ project }: WorkspaceFlags): string {
  const dir = servoDirOf(projectFolder(project === undefined ? {} : { project }))
  refuseEmpty(dir)
  return dir
}

/** Checks the folder before everything below it is listed: it may be a home folder. */
async function checkFolder(dir: string): Promise<void> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw unreadable(dir, error)
    throw new ServoError('not_found', 'no_such_folder', `folder not found: ${dir}`, {
      hint: 'Name the folder of the state, such as .servo, or leave it out in a project.',
    })
  })
  if (names.some((name) => name.startsWith('tenant='))) return
  const below = names.includes('.servo') ? ` Did you mean ${join(dir, '.servo')}?` : ''
  throw new ServoError('not_found', 'not_a_servo_folder', `${dir} is not a folder of Servo's state`, {
    hint: `Such a folder has tenant=…/workspace=… in it.${below}`,
  })
}

function unreadable(dir: string, error: NodeJS.ErrnoException): ServoError {
  return new ServoError('unavailable', 'folder_unreadable', `${dir} cannot be read: ${error.message}`, {
    hint: 'Check the permissions of the folder.',
    cause: error,
  })
}
