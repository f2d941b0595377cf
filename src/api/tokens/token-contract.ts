import { z } from 'zod'
import { timestamp } from '../../model/envelope.ts'
import { roles } from '../access/roles.ts'
import { named, type Told } from '../answers/told.ts'

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

export const revocation = named('Revocation', z.object({ token_id: z.string(), revoked_by: z.string(), revoked_at: timestamp }))
export type Revocation = z.infer<typeof revocation>

const status = z.enum(['active', 'expired', 'revoked'])

const listedToken = named(
  'Token',
  tokenRecord.omit({ sha256: true, tenant_id: true, workspace_id: true }).extend({
    status,
    revoked_by: z.string().nullable().describe('Null while it is not revoked.'),
    revoked_at: timestamp.nullable(),
  }),
)
export type ListedToken = Told<typeof listedToken>

export const tokenList = named('TokenList', z.object({ tokens: z.array(listedToken) }))

export const newToken = named(
  'NewToken',
  listedToken
    .omit({ revoked_by: true, revoked_at: true })
    .extend({ token: z.string().describe('What its bearer sends. It is told this once, and kept nowhere.') }),
)
export type NewToken = Told<typeof newToken>

/** Questions and commands about the tokens of a workspace. */
export interface TokensApi {
  create(body: NewTokenBody, user: string): Promise<NewToken>
  /** The newest first, with those that no longer count. */
  list(): Promise<readonly ListedToken[]>
  /** From then on it does not count, on any process, within a second. A second time changes nothing. */
  revoke(tokenId: string, user: string): Promise<Revocation>
}
