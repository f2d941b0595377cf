import { type Access, type Bearers, bearerOf, type KnownCaller, machineCaller, unauthenticated } from '../access/access.ts'
import type { ApiTokens } from './api-tokens.ts'

/** Other ways in than tokens of Servo's own. */
export interface OtherWaysIn {
  /** The bearer of a token of an issuer that is trusted; undefined for any other token. */
  readonly oidc?: { bearer(token: string): Promise<KnownCaller | undefined> }
  /** The caller whose browser is signed in; undefined if the request has no session. */
  readonly sessions?: { callerOf(request: Request): Promise<KnownCaller> | undefined }
}

/** Knows the token of the machine, the tokens of the workspace, and whom the other ways let in. */
export function tokenAccess(
  machineToken: string,
  tokens: Pick<ApiTokens, 'bearer'>,
  { oidc, sessions }: OtherWaysIn = {},
): Access & Bearers {
  const bearer = async (given: string, headers: Headers): Promise<KnownCaller> =>
    machineCaller(given, headers, machineToken) ?? (await oidc?.bearer(given)) ?? (await tokens.bearer(given))
  return {
    bearer,
    callerOf: async (request) => {
      const given = bearerOf(request.headers)
      // A program says who it is in every request; what a browser adds by itself does not count beside that.
      if (given !== undefined) return await bearer(given, request.headers)
      const signedIn = request.headers.has('authorization') ? undefined : sessions?.callerOf(request)
      if (signedIn === undefined) throw unauthenticated('the request has no token')
      return await signedIn
    },
  }
}
