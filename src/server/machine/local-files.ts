import { join } from 'node:path'

/** One machine, one workspace. */
export const localScope = { tenant_id: 'default', workspace_id: 'default' }

/** What belongs to this machine and not to the state lies beside it. */
export const lockFile = (servoDir: string): string => join(servoDir, 'local', 'server.json')
export const secretsFile = (servoDir: string): string => join(servoDir, 'local', 'secrets.json')

/** Where workers keep what assets make. */
export const dataDir = (servoDir: string): string =>
  join(servoDir, `tenant=${localScope.tenant_id}`, `workspace=${localScope.workspace_id}`)
