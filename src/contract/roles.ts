/** What the bearer of a token is. */
export const roles = ['viewer', 'operator', 'admin', 'worker'] as const
export type Role = (typeof roles)[number]
