import { ServoError } from '../../lib/error.ts'
import { isSameToken } from '../../lib/hash.ts'
import { permits, type Role } from './roles.ts'

/** Somebody who has a token. */
export interface Caller {
  /** Who is put on record as the actor. */
  readonly name: string
  readonly role: Role
}

/** Decides who calls. */
export interface Access {
  /** The caller whose token the request has. Throws if it has none, or none that counts. */
  callerOf(request: Request): Promise<Caller>
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
export function machineCaller(given: string, headers: Headers, token: string): Caller | undefined {
  if (!isSameToken(given, token)) return undefined
  return { name: headers.get('x-servo-user')?.slice(0, 200) || 'local', role: 'admin' }
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
