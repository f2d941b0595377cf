import { type Secrets, type WorkspaceSecrets, workspaceSecrets } from '../../ports/secrets.ts'

/** Secrets that live as long as the value. */
export function memorySecrets(): Secrets {
  let kept: WorkspaceSecrets | undefined
  const copy = (): WorkspaceSecrets | undefined => structuredClone(kept)
  return {
    read: async () => copy(),
    async create(secrets) {
      kept ??= workspaceSecrets.parse(structuredClone(secrets))
      return copy() as WorkspaceSecrets
    },
  }
}
