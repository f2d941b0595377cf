import { answer, BASE, type Route, route } from '../routing/route.ts'
import { newTokenBody, type TokensApi } from './token-contract.ts'

const tokens = `${BASE}/tokens` as const

/** Routes for the tokens of the workspace. */
export const tokenRoutes = (service: TokensApi): Route[] => [
  route({
    method: 'GET',
    path: tokens,
    needs: 'admin',
    handle: async () => ({ tokens: await service.list() }),
  }),
  route({
    method: 'POST',
    path: tokens,
    needs: 'admin',
    body: newTokenBody,
    statuses: [201],
    tellsSecret: true,
    // No cache may keep the secret.
    handle: async ({ body, by }) => answer(await service.create(body, by.name), 201, { 'cache-control': 'no-store' }),
  }),
  route({
    method: 'POST',
    path: `${tokens}/:token_id/revoke`,
    needs: 'admin',
    handle: ({ params, by }) => service.revoke(params.token_id, by.name),
  }),
]
