import { z } from 'zod'
import { timestamp } from '../../model/envelope.ts'
import { roles } from '../access/roles.ts'

/** A name goes on record as the actor, with the id of the token in brackets: it must not be able to imitate one. */
const tokenName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@-]{0,59}$/, 'must be 1 to 60 of A-Z a-z 0-9 . _ @ -, beginning with a letter or digit')

export const newTokenBody = z.object({
  name: tokenName,
  role: z.enum(roles),
  /** Null for a token that never expires; 90 days from now if absent. */
  expires_at: timestamp.nullable().optional(),
})
export type NewTokenBody = z.infer<typeof newTokenBody>

/** What is kept of a token: everything but its secret. */
export const tokenRecord = z.object({
  token_id: z.string(),
  tenant_id: z.string(),
  workspace_id: z.string(),
  name: tokenName,
  role: z.enum(roles),
  created_by: z.string(),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  /** Of the secret, as lower-case hex. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
export type TokenRecord = z.infer<typeof tokenRecord>

export const revocation = z.object({ token_id: z.string(), revoked_by: z.string(), revoked_at: timestamp })
export type Revocation = z.infer<typeof revocation>

export interface ListedToken extends Omit<TokenRecord, 'sha256' | 'tenant_id' | 'workspace_id'> {
  readonly status: 'active' | 'expired' | 'revoked'
  /** Null while it is not revoked. */
  readonly revoked_by: string | null
  readonly revoked_at: string | null
}

export interface NewToken extends Omit<ListedToken, 'revoked_by' | 'revoked_at'> {
  /** What its bearer sends. It is told this once, and kept nowhere. */
  readonly token: string
}

/** Questions and commands about the tokens of a workspace. */
export interface TokensApi {
  create(body: NewTokenBody, user: string): Promise<NewToken>
  /** The newest first, with those that no longer count. */
  list(): Promise<readonly ListedToken[]>
  /** From then on it does not count, on any process, within a second. A second time changes nothing. */
  revoke(tokenId: string, user: string): Promise<Revocation>
}
