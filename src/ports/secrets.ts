import { z } from 'zod'

const secret = z.object({
  /** Recorded with whatever the secret made, so that it can be told which one that was. Part of a path in the store. */
  id: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/),
  value: z.string().min(16),
})

export const workspaceSecrets = z.object({
  /** Makes run ids from run keys. */
  run_ids: secret,
  /** Lets programs of this machine speak to the server. */
  api_token: z.string().min(16),
  /** Signs the tokens of attempts. */
  task_tokens: secret,
})
export type WorkspaceSecrets = z.infer<typeof workspaceSecrets>

/**
 * Where the secrets of a workspace are kept, apart from its state: a program that may read the state need not know them.
 * What cannot be read is an error, and never the same as what is not there. Every adapter passes `testing/conformance/secrets.ts`.
 */
export interface Secrets {
  /** Undefined when none were made yet, or they were deleted. */
  read(): Promise<WorkspaceSecrets | undefined>
  /** Keeps these unless there are some: whole or not at all, durable, and readable by their owner alone. For the leader only. */
  create(secrets: WorkspaceSecrets): Promise<'written' | 'exists'>
}
