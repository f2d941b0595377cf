import type { OidcIssuer } from '../../contract/server-settings.ts'
import { isObject } from '../../lib/is-object.ts'
import type { Role } from '../access/roles.ts'

export type Claims = Readonly<Record<string, unknown>>

/** The highest first: a token that has the claims of several roles has the first of them. */
const highestFirst: readonly Role[] = ['admin', 'operator', 'viewer', 'worker']

/** The role that these claims give; undefined if they give none. */
export function matchingRole(claims: Claims, wanted: OidcIssuer['roles']): Role | undefined {
  return highestFirst.find((role) => {
    const needs = wanted[role]
    if (needs === undefined) return false
    return needs === 'everyone' || Object.entries(needs).every(([name, values]) => has(claimOf(claims, name), values))
  })
}

/** A claim may be one value or a list of them. */
const has = (claim: unknown, values: readonly unknown[]): boolean =>
  Array.isArray(claim) ? claim.some((each) => values.includes(each)) : values.includes(claim)

/**
 * The claim of this name. A name with dots may be that of a member of a claim, such as `realm_access.roles`, or just a name with dots,
 * such as `https://shop.example/roles`. An address that its owner has not confirmed is nobody's.
 */
export function claimOf(claims: Claims, name: string): unknown {
  if (name === 'email' && claims['email_verified'] !== true && claims['email_verified'] !== 'true') return undefined
  if (Object.hasOwn(claims, name)) return claims[name]
  return name
    .split('.')
    .reduce<unknown>((value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined), claims)
}
