import { type Role, roles } from '../../contract/roles.ts'

export { type Role, roles }

/** The roles that each role includes. A worker takes work and nothing else: it may run on a machine that nobody looks after. */
const includes: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer'],
  operator: ['viewer', 'operator'],
  admin: roles,
  worker: ['worker'],
}

/** True if a caller of this role may do what needs that one. */
export const permits = (role: Role, needed: Role): boolean => includes[role].includes(needed)
