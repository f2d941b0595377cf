import { objectOf, type Shaped, textLike } from '../lib/shape.ts'

const longText = textLike(/^.{16,}$/s)

const isSecret = objectOf({
  /** Recorded with everything the secret made, to identify the secret. Part of a path in the store. */
  id: textLike(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/),
  value: longText,
})

export const isWorkspaceSecrets = objectOf({
  /** Makes run ids from run keys. */
  run_ids: isSecret,
  /** Lets programs of this machine call the server. */
  api_token: longText,
  /** Signs the tokens of attempts. */
  task_tokens: isSecret,
})
export type WorkspaceSecrets = Shaped<typeof isWorkspaceSecrets>

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
