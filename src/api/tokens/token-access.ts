import { type Access, bearerOf, type Caller, machineCaller, unauthenticated } from '../access/access.ts'
import type { ApiTokens } from './api-tokens.ts'

/** Knows the token of the machine, and the tokens of the workspace. */
export const tokenAccess = (machineToken: string, tokens: Pick<ApiTokens, 'bearer'>): Access => ({
  callerOf: async ({ headers }): Promise<Caller> => {
    const given = bearerOf(headers)
    if (given === undefined) throw unauthenticated('the request has no token')
    return machineCaller(given, headers, machineToken) ?? (await tokens.bearer(given))
  },
})
