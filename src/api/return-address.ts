import type { DispatchEnvelope } from '../contract/dispatch.ts'
import type { AttemptGrant, TaskTokens } from './task-tokens.ts'

export interface ReturnAddress {
  readonly tokens: TaskTokens
  readonly scope: Pick<AttemptGrant, 'tenant_id' | 'workspace_id'>
  /** The address at which workers reach this server, without a slash at the end. It is configured, because a sender may put anything into the Host header. */
  readonly baseUrl: () => string
}

/** Adds to the envelope the address and the token with which its worker answers. */
export function withReturnAddress(envelope: DispatchEnvelope, { tokens, scope, baseUrl }: ReturnAddress): DispatchEnvelope {
  const { run_id, task_key, attempt, attempt_id } = envelope
  const { token, token_expires_at } = tokens.mint({ ...scope, run_id, task_key, attempt, attempt_id })
  return {
    ...envelope,
    callback_base_url: baseUrl(),
    task_token: token,
    token_expires_at,
  }
}
