import type { AssetsApi } from '../api/asset-contract.ts'
import { findProject, type ProjectFlags, runningServer, servoDirOf } from './project.ts'

/** The server of the project or, when none runs, its folder: everything about assets can be asked and told there too. */
export async function openAssets(flags: ProjectFlags): Promise<AssetsApi> {
  const projectDir = findProject(flags)
  const server = await runningServer(projectDir)
  if (server !== undefined) return server.assets
  const { offlineAssets } = await import('../server/workspace/offline.ts')
  return await offlineAssets(servoDirOf(projectDir))
}
