import { ServoError } from '../../lib/error.ts'
import { isSameToken } from '../../lib/hash.ts'
import { permits, type Role } from './roles.ts'

/** By what somebody was let in. */
export type Credential =
  | { readonly kind: 'machine' }
  | { readonly kind: 'token'; readonly id: string }
  | {
      readonly kind: 'oidc'
      readonly issuer: string
      /** Of the settings by which it counted. */
      readonly version: string
      readonly name: string
      readonly role: Role
      readonly until: number
    }

/** Somebody who has a token. */
export interface Caller {
  /** Who is put on record as the actor. */
  readonly name: string
  readonly role: Role
}

/** A caller with what can be looked up again. */
export interface KnownCaller extends Caller {
  readonly credential: Credential
}

/** Decides who calls. */
export interface Access {
  /** The caller whose token, or whose session, the request has. Throws if it has none, or none that counts. */
  callerOf(request: Request): Promise<Caller>
}

/** Knows whose a token is. */
export interface Bearers {
  /** The bearer of this token. Throws if it does not count. */
  bearer(token: string, headers: Headers): Promise<KnownCaller>
}

/** Nobody gets in. */
export const NO_ACCESS: Access = {
  callerOf: async () => {
    throw unauthenticated('this server knows no tokens')
  },
}

/**
 * The caller, if this is the token of the machine. Who can read that can read and write the state itself, so it may do everything, and is
 * believed who it is; nobody else is.
 */
export function machineCaller(given: string, headers: Headers, token: string): KnownCaller | undefined {
  if (!isSameToken(given, token)) return undefined
  return { name: headers.get('x-servo-user')?.slice(0, 200) || 'local', role: 'admin', credential: { kind: 'machine' } }
}

/** The caller, if it may do what needs this role. */
export async function admit(access: Access, request: Request, needed: Role): Promise<Caller> {
  const caller = await access.callerOf(request)
  if (permits(caller.role, needed)) return caller
  throw new ServoError(
    'invalid',
    'not_permitted',
    `this needs the role ${needed}; the token of ${caller.name} has the role ${caller.role}`,
    { hint: `Use a token with the role ${needed}. An administrator makes one: servo tokens create --role ${needed} --name …` },
  )
}

/** The token of `Authorization: Bearer …`. */
export const bearerOf = (headers: Headers): string | undefined =>
  /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '')?.[1]

const HOW = 'Send the header authorization: Bearer <token>. servo tokens create makes a token, on the machine of the server.'

export const unauthenticated = (message: string, hint = HOW): ServoError =>
  new ServoError('invalid', 'unauthenticated', message, { hint })
