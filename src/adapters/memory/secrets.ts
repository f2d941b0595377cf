import type { Secrets, WorkspaceSecrets } from '../../ports/secrets.ts'

/** Secrets that live as long as the value. */
export function memorySecrets(): Secrets {
  let kept: WorkspaceSecrets | undefined
  return {
    read: async () => structuredClone(kept),
    async create(secrets) {
      if (kept !== undefined) return 'exists'
      kept = structuredClone(secrets)
      return 'written'
    },
  }
}
