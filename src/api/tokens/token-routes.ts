import { answer } from '../routing/answer.ts'
import { BASE, type Route, route } from '../routing/route.ts'
import { newToken, newTokenBody, revocation, type TokensApi, tokenList } from './token-contract.ts'

const tokens = `${BASE}/tokens` as const

/** Routes for the tokens of the workspace. */
export const tokenRoutes = (service: TokensApi): Route[] => [
  route({
    method: 'GET',
    path: tokens,
    operation: 'listTokens',
    summary: 'Lists all tokens, the newest first, without their secrets.',
    needs: 'admin',
    answer: tokenList,
    handle: async () => ({ tokens: await service.list() }),
  }),
  route({
    method: 'POST',
    path: tokens,
    operation: 'createToken',
    example: { name: 'ci', role: 'operator' },
    summary: 'Makes a token. The answer has its secret, this once.',
    needs: 'admin',
    answer: newToken,
    body: newTokenBody,
    statuses: [201],
    tellsSecret: true,
    // No cache may keep the secret.
    handle: async ({ body, by }) => answer(await service.create(body, by.name), 201, { 'cache-control': 'no-store' }),
  }),
  route({
    method: 'POST',
    path: `${tokens}/:token_id/revoke`,
    operation: 'revokeToken',
    summary: 'Revokes a token: within a second no process accepts it any more.',
    needs: 'admin',
    answer: revocation,
    problems: [404],
    handle: ({ params, by }) => service.revoke(params.token_id, by.name),
  }),
]
