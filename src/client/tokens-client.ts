import type { ListedToken, TokensApi } from '../api/tokens/token-contract.ts'
import type { Connection } from './connection.ts'
import type { Remote } from './remote.ts'

/** Has a server make and revoke tokens. */
export function tokensClient(server: Connection): Remote<TokensApi> {
  return {
    create: (body, user) => server.json('POST', '/tokens', { body, user }),
    list: async () => (await server.json<{ tokens: readonly ListedToken[] }>('GET', '/tokens')).tokens,
    revoke: (id, user) => server.json('POST', `/tokens/${encodeURIComponent(id)}/revoke`, { user }),
  }
}
