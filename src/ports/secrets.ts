import { z } from 'zod'

const secret = z.object({
  /** Recorded with everything the secret made, to identify the secret. Part of a path in the store. */
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/),
  value: z.string().min(16),
})

export const workspaceSecrets = z.object({
  /** Makes run ids from run keys. */
  run_ids: secret,
  /** Lets programs of this machine call the server. */
  api_token: z.string().min(16),
  /** Signs the tokens of attempts. */
  task_tokens: secret,
})
export type WorkspaceSecrets = z.infer<typeof workspaceSecrets>

/**
 * Where the secrets of a workspace are kept, apart from its state: a program that may read the state need not know them.
 * A secret that cannot be read is an error, and never the same as a missing one. Every adapter passes `testing/conformance/secrets.ts`.
 */
export interface Secrets {
  /** Undefined when none were made yet, or they were deleted. */
  read(): Promise<WorkspaceSecrets | undefined>
  /** Keeps these unless there are some: whole or not at all, durable, and readable by their owner alone. For the leader only. */
  create(secrets: WorkspaceSecrets): Promise<'written' | 'exists'>
}
