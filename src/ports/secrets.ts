import { z } from 'zod'

const secret = z.object({ id: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), value: z.string().min(16) })
export type Secret = z.infer<typeof secret>

export const workspaceSecrets = z.object({
  /** Makes run ids. */
  run_ids: secret,
  /** Lets programs of this machine speak to the server. */
  api_token: z.string().min(16),
  /** Signs the tokens of attempts. */
  task_tokens: secret,
})
export type WorkspaceSecrets = z.infer<typeof workspaceSecrets>

/**
 * Keeps the secrets of one workspace. What cannot be read is an error of kind `unavailable`, what cannot be understood one of
 * kind `corrupt`: neither is the same as nothing being kept. Every adapter passes `testing/conformance/secrets.ts`.
 */
export interface Secrets {
  /** What is kept; undefined when nothing is. */
  read(): Promise<WorkspaceSecrets | undefined>
  /** Keeps these unless some are kept already. Returns what is kept from now on, durably: of several creators the first counts. */
  create(secrets: WorkspaceSecrets): Promise<WorkspaceSecrets>
}
